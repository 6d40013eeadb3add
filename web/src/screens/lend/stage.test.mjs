import assert from "node:assert/strict";
import { test } from "node:test";
import { stageOf } from "./stage";

const HERON = { id: 1, name: "heron" };
const OSPREY = { id: 2, name: "osprey" };
const known = new Set([HERON.id]);

test("a command waits until it expires", () => {
  assert.deepEqual(stageOf(1000, 1000, known, [HERON]), { stage: "waiting" });
  assert.deepEqual(stageOf(1000, 1001, known, [HERON]), { stage: "expired" });
});

test("the machine that was not there before has arrived, however late", () => {
  assert.deepEqual(stageOf(1000, 500, known, [HERON, OSPREY]), { stage: "arrived", arrived: OSPREY });
  assert.deepEqual(stageOf(1000, 5000, known, [OSPREY, HERON]), { stage: "arrived", arrived: OSPREY });
  assert.deepEqual(stageOf(1000, 500, known, []), { stage: "waiting" }); // one was withdrawn
});
