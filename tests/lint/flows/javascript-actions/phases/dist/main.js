const core = require("@actions/core");
const exec = require("@actions/exec");

async function run() {
  const cell = core.getInput("cell-id");
  await exec.exec("tool", ["--cell", cell]); // # leak
  await exec.exec("tool", [], { env: { CELL: cell } });
  core.setOutput("cell", cell);
  core.setOutput("length", cell.length);
  core.exportVariable("FROM_ACTION", cell);
}

run();
