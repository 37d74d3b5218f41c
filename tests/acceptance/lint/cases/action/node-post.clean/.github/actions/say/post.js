const { execFileSync } = require("child_process");
execFileSync("tool", ["after"], { env: { ...process.env, CELL: process.env.INPUT_WHAT } });
