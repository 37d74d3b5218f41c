const { execFileSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
execFileSync("gh", ["run", "download", process.env.GITHUB_RUN_ID, "--name", "cell", "--dir", "js"]);
console.log(readFileSync("js/cell.txt", "utf8")); // # log
console.log(1);
