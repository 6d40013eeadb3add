import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenBy, machinesOf, trialOf, wishOf } from "./chosen";
import { emptyDraft, jobFile } from "./draft";

const wish = emptyDraft().wish;
const range = (expected) => ({ low: expected / 2, expected, high: expected * 2 });

test("a wish has what was filled in, in the market's units, and of the paper's rules nothing that is not theirs", () => {
  assert.deepEqual(wishOf(wish, { name: "a" }), { job: { name: "a" }, rule: "auto", wish: "cheapest" });
  const full = { ...wish, kind: "fastest", perHour: "2.5", whole: " 1 ", deadline: "1h30m", workersMost: "8", serverType: "4c@1.0", workerType: " 2c@1.1 " };
  assert.deepEqual(wishOf(full, {}), {
    job: {}, rule: "auto", wish: "fastest", budget_micro_per_hour: 2_500_000, budget_micro: 1_000_000, deadline_s: 5400, worker_max: 8,
    server_type: "4c@1.0", worker_type: "2c@1.1",
  });
  assert.deepEqual(wishOf({ ...full, rule: "scala-opt-m" }, {}), {
    job: {}, rule: "scala-opt-m", budget_micro_per_hour: 2_500_000, worker_max: 8, server_type: "4c@1.0", worker_type: "2c@1.1",
  });
});

test("what is chosen fills the fields, and is forgotten as foretold when they change", () => {
  const draft = { ...emptyDraft(), workersMost: "9", more: { "market.min_speed": "3", "train.seed": "7" } };
  const cluster = { time_s: range(60), cost_micro: range(1000),
    job: { num_nodes: 3, resources: { cpus: "2+" }, market: { max_hourly_cost: "2.500000", max_total_cost: "0.000300", max_run_time: "90s", min_speed: 0.85 }, sync: { policy: "pace" } } };
  const chosen = { ...draft, ...chosenBy(draft, cluster, "auto") };
  const file = jobFile(chosen);
  assert.deepEqual([file.num_nodes, file.num_nodes_max, file.resources.cpus, file.sync.policy], [3, undefined, "2+", "pace"]);
  assert.deepEqual([file.market.min_speed, file.market.max_hourly_cost, file.train.seed], [0.85, 2.5, 7]);
  assert.deepEqual([file.market.max_total_cost, file.market.max_run_time], [0.0003, "90s"]);
  assert.deepEqual(chosen.foretold.time_ms, range(60_000));
  assert.equal(chosen.foretold.is_bound, false);
  const bound = chosenBy(draft, { ...cluster, time_s: { ...range(60), low: 0 } }, "auto"); // no run has reached its target
  assert.equal(bound.foretold.is_bound, true);
  assert.equal(chosen.foretold.of, machinesOf(chosen));
  assert.notEqual(chosen.foretold.of, machinesOf({ ...chosen, workers: "4" }));
  // One without a limit and a speed takes those of the one before away.
  const plain = { ...chosen, ...chosenBy(chosen, { ...cluster, job: { num_nodes: 1, resources: { cpus: "1" }, market: { min_speed: 0 }, sync: { policy: "bsp" } } }, "auto") };
  assert.deepEqual(plain.more, { "train.seed": "7" });
  assert.equal(plain.canHaveMoreCpus, false);
});

test("a trial is the same job for some seconds, without a target", () => {
  const told = { needed: true, seconds: 4, cost_micro: 100, steps: 20, job: { num_nodes: 1, resources: { cpus: "1" }, market: { min_speed: 0.5 }, sync: { policy: "bsp" } } };
  const { ms, cost_micro, of } = trialOf(told);
  assert.deepEqual([ms, cost_micro], [8000, 200]);
  const job = of({ name: "mine", num_nodes: 5, num_nodes_max: 9, train: { model: "mlp", epochs: 50, target: { accuracy: 0.9 } }, resources: { cpus: "4", memory: "1" },
    market: { max_run_time: "1h", expected_run_time: "30m", start: "cheapest before 2h" }, sync: { policy: "auto", gamma: "1s" } });
  assert.deepEqual(job, { name: "mine-trial", num_nodes: 1, train: { model: "mlp", epochs: 50 }, resources: { cpus: "1", memory: "1" },
    market: { max_run_time: "8000ms", min_speed: 0.5 }, sync: { policy: "bsp", gamma: "1s" } });
});
