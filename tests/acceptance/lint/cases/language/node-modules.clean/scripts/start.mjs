import { spawnSync } from "node:child_process";

export const flag = (value) => `--set=${value.length > 0}`;

export default async function start(name, ...rest) {
  return spawnSync(name, rest);
}
