// What bench/page.py has a browser do.
//
//   node page.mjs URL_WITH_CODE FOLDER first
//   node page.mjs URL_WITH_CODE FOLDER watch JOB WORKERS
import { browse } from "../tests/browser/kit.mjs";

const [url, folder, part, job, workers] = process.argv.slice(2);
const COUNTED_MS = 5000;

async function first({ page, seen, until }) {
  await page.goto(url);
  await until(() => performance.getEntriesByName("first screen").length > 0);
  Object.assign(seen, await page.evaluate(() => {
    const at_ms = performance.getEntriesByName("first screen")[0].startTime;
    const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter((entry) => entry.startTime < at_ms && !entry.name.includes("/v1/"));
    return { interactive_ms: at_ms, first_load_bytes: files.reduce((sum, entry) => sum + entry.encodedBodySize, 0) };
  }));
}

async function heap_mb(session) {
  await session.send("HeapProfiler.collectGarbage");
  return (await session.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
}

// Events that reach the page.
async function events_per_s(session) {
  let count = 0;
  const heard = () => count++;
  await session.send("Network.enable");
  session.on("Network.eventSourceMessageReceived", heard);
  await new Promise((done) => setTimeout(done, COUNTED_MS));
  session.off("Network.eventSourceMessageReceived", heard);
  await session.send("Network.disable");
  return (count * 1000) / COUNTED_MS;
}

async function watch({ context, page, seen, until, step, shoot }) {
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.evaluate((id) => (location.hash = `/jobs/${id}`), job);
  await until((count) => document.querySelectorAll("canvas.strip").length === count, Number(workers));
  const session = await context.newCDPSession(page);
  seen.events_per_s = await events_per_s(session);
  await step("warm");
  const before = await heap_mb(session);
  await step("measure");
  const after = await heap_mb(session);
  Object.assign(seen, { heap_mb: after, job_page_heap_growth_mb: after - before });
  await shoot("crowd", { fullPage: true });
}

await browse({ url, folder }, part === "first" ? first : watch);
