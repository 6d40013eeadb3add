// The runner loads this before the unit tests.
import { File } from "node:buffer";

globalThis.File ??= File; // Node 18 exports it only there

// The page's own intervals never end: let the tests exit anyway.
const begin = globalThis.setInterval;
globalThis.setInterval = (...given) => begin(...given).unref();
