const { spawnSync } = require("child_process");
const core = require("@actions/core");
spawnSync("tool", [core.getState("cell")]); // # leak
