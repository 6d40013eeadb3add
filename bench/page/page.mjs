// What bench/page.py has a browser do.
//
//   node page.mjs URL_WITH_CODE FOLDER first
//   node page.mjs URL_WITH_CODE FOLDER watch JOB WORKERS SAMPLES
import { browse } from "../../tests/browser/kit.mjs";

const [url, folder, part, job, workers, samples] = process.argv.slice(2);
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

// What the page's script holds after collecting garbage, apart from what the browser keeps for itself: the compiled code,
// and the document's own objects.
async function heap(session) {
  const chunks = [];
  const take = ({ chunk }) => chunks.push(chunk);
  session.on("HeapProfiler.addHeapSnapshotChunk", take);
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  session.off("HeapProfiler.addHeapSnapshotChunk", take);
  const { snapshot: { meta }, nodes } = JSON.parse(chunks.join(""));
  const [kinds] = meta.node_types;
  const kind = meta.node_fields.indexOf("type"), size = meta.node_fields.indexOf("self_size");
  const bytes = { code: 0, native: 0, synthetic: 0, kept: 0 };
  for (let at = 0; at < nodes.length; at += meta.node_fields.length) {
    const name = kinds[nodes[at + kind]];
    bytes[name in bytes ? name : "kept"] += nodes[at + size];
  }
  return { at_s: performance.now() / 1000, kept_mb: bytes.kept / 2 ** 20, code_mb: bytes.code / 2 ** 20 };
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
  seen.heap = [await heap(session)];
  while (seen.heap.length < Number(samples)) {
    await step("sample");
    seen.heap.push(await heap(session));
  }
  await shoot("crowd", { fullPage: true });
}

await browse({ url, folder, reducedMotion: "no-preference" }, part === "first" ? first : watch);
