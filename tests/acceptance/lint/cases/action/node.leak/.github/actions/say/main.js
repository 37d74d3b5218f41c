const { spawnSync } = require("child_process");
spawnSync("tool", [process.env.INPUT_WHAT]); // a program gets the input # leak-here
