const { spawnSync } = require("child_process");
const [, , name] = process.argv;
spawnSync("tool", ["--variable", name], { env: { ...process.env, CELL: process.env[name] } });
