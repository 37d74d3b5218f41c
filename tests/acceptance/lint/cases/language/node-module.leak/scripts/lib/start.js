const { spawnSync } = require("child_process");

exports.run = function run(value) {
  spawnSync("tool", [value]); // # leak-here
};
