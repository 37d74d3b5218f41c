import start, { flag } from "./start.mjs";

await start("tool", flag(process.env.ID));
