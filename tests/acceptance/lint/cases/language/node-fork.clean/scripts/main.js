const { fork } = require("child_process");
fork("scripts/child.js", ["--id"], { env: { PATH: process.env.PATH, CELL: "1" } });
