const { execFileSync } = require("child_process");
execFileSync("tool", ["after", process.env.INPUT_WHAT]); // # leak-here
