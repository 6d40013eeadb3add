// Loaded before the units' tests.
import { File } from "node:buffer";

globalThis.File ??= File; // Node 18 has it there alone

// The page's own clocks, which run as long as the page does, end with the tests.
const begin = globalThis.setInterval;
globalThis.setInterval = (...given) => begin(...given).unref();
