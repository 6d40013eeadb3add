import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Problem } from "../api/problem";
import { mark } from "./live";
import { resource } from "./resource";

globalThis.window = globalThis;

async function pass(seconds) {
  for (let at = 0; at < seconds; at++) {
    await new Promise(setImmediate);
    mock.timers.tick(1000);
  }
  await new Promise(setImmediate);
}

async function readsOf(status, act = async () => undefined) {
  let reads = 0;
  const shown = resource(async () => {
    reads++;
    throw new Problem(status, "", "no", "");
  }, ["job"]);
  mock.timers.enable({ apis: ["setTimeout"] });
  const hide = shown.show();
  await pass(20);
  await act();
  await pass(20);
  hide();
  mock.timers.reset();
  assert.equal(shown.problem.value.status, status);
  return reads;
}

test("what the market cannot answer just now is asked for again", async () => {
  assert.ok((await readsOf(503)) >= 10);
});

test("what is not there is asked for once, and again when an event tells of it", async () => {
  assert.equal(await readsOf(404), 1);
  assert.equal(await readsOf(404, async () => mark(["job"])), 2);
});
