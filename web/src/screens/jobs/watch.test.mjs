import assert from "node:assert/strict";
import test from "node:test";
import { Lane, STRIP_SLOTS, Watch } from "./watch.ts";

globalThis.window = globalThis;

const JOB = 7;

function report(at_ms, lease, role) {
  return { job: JOB, lease, role, rank: 0, replica: false, at_ms, elapsed_ms: at_ms, samples: at_ms, loss: 1 / at_ms, test_accuracy: null,
    steps_per_second: 10, commits: at_ms, first_step_ms: 1, compute_ms: at_ms / 2, transfer_ms: at_ms / 4, wait_ms: at_ms / 4 };
}

// A day of ten reports a second of the parameter server and two workers.
function day(watch, { leases }) {
  for (let at_ms = 100; at_ms < 86_400_000; at_ms += 100) watch.take(leases.map((lease) => report(at_ms, lease, lease ? "worker" : "server")));
}

test("however long one looks, what is kept of the reports stays the same", () => {
  const watch = new Watch(JOB);
  watch.read({ curve: [{ elapsed_ms: 0, samples: 0, loss: 2, test_accuracy: null }], workers: [] });
  day(watch, { leases: [0, 1, 2] });
  clearTimeout(watch.timer);
  assert.equal(watch.points().length, 1 + 128);
  assert.equal(watch.points().at(-1).elapsed_ms, 86_399_900);
  assert.equal(watch.lanes.size, 2);
  assert.equal(watch.lanes.get(1).slots.length, STRIP_SLOTS);
  assert.deepEqual([...watch.lanes.get(1).slots].sort((a, b) => a - b).at(-1), Math.floor(86_399_900 / 1000));
});

test("workers that come and go without end leave nothing behind once the market's list says so", () => {
  const watch = new Watch(JOB);
  for (let lease = 1; lease <= 5000; lease++) watch.take([report(lease * 100, lease, "worker")]);
  assert.equal(watch.lanes.size, 1024);
  watch.read({ curve: [], workers: [report(1, 9999, "worker")] });
  clearTimeout(watch.timer);
  assert.deepEqual([...watch.lanes.keys()], [9999]);
});

test("what the market's curve has is not kept a second time", () => {
  const watch = new Watch(JOB);
  for (let at_ms = 100; at_ms <= 1000; at_ms += 100) watch.take([report(at_ms, 0, "server")]);
  assert.equal(watch.points().length, 10);
  watch.read({ curve: [{ elapsed_ms: 800, samples: 0, loss: 2, test_accuracy: null }], workers: [] });
  clearTimeout(watch.timer);
  assert.deepEqual(watch.points().map((point) => point.elapsed_ms), [800, 900, 1000]);
});

test("a second's shares are of that second alone", () => {
  const lane = new Lane({ at_ms: 1000, first_step_ms: 1, compute_ms: 0, transfer_ms: 0, wait_ms: 0 });
  lane.take({ ...report(2000, 1, "worker"), compute_ms: 750, transfer_ms: 250, wait_ms: 0 });
  assert.equal(lane.compute[2], 0.75);
  assert.equal(lane.transfer[2], 0.25);
});
