const { spawnSync } = require("child_process");
const [, , id] = process.argv;
spawnSync("tool", ["--id", id]); // # leak-here
