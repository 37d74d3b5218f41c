const fs = require("fs");
const what = process.env.INPUT_WHAT;
fs.appendFileSync(process.env.GITHUB_OUTPUT, `text=${what}\nlength=${what.length}\n`);
