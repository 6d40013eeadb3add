// Loaded before the units' tests: the page's own clocks, which run as long as the page does, end with the tests.
const begin = globalThis.setInterval;
globalThis.setInterval = (...given) => begin(...given).unref();
