const { spawnSync } = require("child_process");
spawnSync("tool", ["what"]);
