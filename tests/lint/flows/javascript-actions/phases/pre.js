const { execFileSync } = require("child_process");
const core = require("@actions/core");
execFileSync("tool", [process.env["INPUT_CELL-ID"]]); // # leak
core.saveState("cell", core.getInput("cell-id"));
