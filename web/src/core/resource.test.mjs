import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../api/problem";
import { mark } from "./live";
import { resource } from "./resource";

globalThis.window = globalThis;

// Timers on the test's own clock: Node's mock timers differ between versions.
function timers({ mock }) {
  const waiting = new Map();
  let now_ms = 0;
  let last = 0;
  mock.method(globalThis, "setTimeout", (act, wait_ms = 0) => {
    waiting.set(++last, { act, at_ms: now_ms + wait_ms });
    return last;
  });
  mock.method(globalThis, "clearTimeout", (timer) => waiting.delete(timer));
  return async (seconds) => {
    for (let at = 0; at < seconds; at++) {
      await new Promise(setImmediate);
      now_ms += 1000;
      for (const [timer, { act, at_ms }] of waiting)
        if (at_ms <= now_ms) {
          waiting.delete(timer);
          act();
        }
    }
    await new Promise(setImmediate);
  };
}

async function readsOf(context, status, act = async () => undefined) {
  let reads = 0;
  const shown = resource(async () => {
    reads++;
    throw new Problem(status, "", "no", "");
  }, ["job"]);
  const pass = timers(context);
  const hide = shown.show();
  await pass(20);
  await act();
  await pass(20);
  hide();
  context.mock.restoreAll();
  assert.equal(shown.problem.value.status, status);
  return reads;
}

test("a request that the market cannot answer yet is retried", async (context) => {
  assert.ok((await readsOf(context, 503)) >= 10);
});

test("a missing thing is asked for once, and again when an event names it", async (context) => {
  assert.equal(await readsOf(context, 404), 1);
  assert.equal(await readsOf(context, 404, async () => mark(["job"])), 2);
});
