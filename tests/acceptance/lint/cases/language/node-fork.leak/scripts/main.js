const { fork } = require("child_process");
fork("scripts/child.js", ["--id"], { env: { ...process.env, CELL: process.env.ID } });
