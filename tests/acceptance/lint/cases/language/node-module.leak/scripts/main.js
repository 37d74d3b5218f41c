const { run } = require("./lib/start");
run(process.env.ID);
