const { spawnSync } = require("child_process");
spawnSync("tool", [process.argv[2], process.env.CELL || process.env.ID]);
