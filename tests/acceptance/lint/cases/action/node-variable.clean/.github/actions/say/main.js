const fs = require("fs");
fs.appendFileSync(process.env.GITHUB_ENV, "FROM_ACTION=" + process.env.INPUT_WHAT + "\n");
