import { spawnSync } from "node:child_process";

export const flag = (value) => `--id=${value}`;

export default async function start(name, ...rest) {
  return spawnSync(name, rest); // tool # leak-here
}
