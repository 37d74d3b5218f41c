const { spawnSync } = require("child_process");

exports.run = function run(value) {
  spawnSync("tool", ["--set"], { env: { ...process.env, CELL: value } });
};
