import assert from "node:assert/strict";
import test from "node:test";
import { sorted } from "../../ui/order.ts";
import { filtersOf, matching, orders } from "./matching.ts";

const GIB = 2 ** 30;
const machine = (id, name, more = {}) => ({
  id, name, account_name: "ada", availability: "free", yield: "none", lease_count: 0, offer_state: "open", earned_microcredits: id,
  free: { cores_milli: 1000 * id, ram_bytes: id * GIB, gpus_milli: 0 }, offer: { minimum: {} },
  probe: { speed_weight_milli: 1000 - id, rtt_us: 0 }, reputation: { reliability_milli: 1000 - 100 * id }, ...more,
});
const machines = [
  machine(1, "heron", { probe: { speed_weight_milli: 700, rtt_us: 9000 } }),
  machine(2, "wren", { availability: "paused", yield: "paused_remotely", account_name: "bob" }),
  machine(4, "owl", { probe: { speed_weight_milli: 900, rtt_us: 200 }, offer: { gpus_milli: 2000, minimum: { core_micro: 5 } },
    free: { cores_milli: 500, ram_bytes: 8 * GIB, gpus_milli: 1000 } }),
];
const spare = new Set([4]);
const found = (query) => matching(machines, filtersOf(new URLSearchParams(query)), spare).map(({ name }) => name).join(" ");

test("every filter, alone", () => {
  assert.equal(found(""), "heron wren owl");
  assert.equal(found("name= WREN "), "wren");
  assert.equal(found("name=bob"), "wren"); // matches the lender
  assert.equal(found("name=<b>"), "");
  assert.equal(found("state=paused"), "wren");
  assert.equal(found("state=free"), "heron owl");
  assert.equal(found("spare=yes"), "owl");
  assert.equal(found("cores=2"), "wren");
  assert.equal(found("memory=2"), "wren owl");
  assert.equal(found("gpus=1"), "owl");
  assert.equal(found("gpus=2"), "");
  assert.equal(found("reliability=0.8"), "heron wren");
  assert.equal(found("rtt=1"), "owl"); // an unmeasured machine is not near
  assert.equal(found("rtt=10"), "heron owl");
});

test("filters combine, and ignore an amount that is not a number", () => {
  assert.equal(found("state=free&memory=8"), "owl");
  assert.equal(found("state=free&name=wren"), "");
  assert.equal(found("cores=many"), "heron wren owl");
});

test("every column has its order", () => {
  const by = (column) => sorted(machines, [{ name: column, sort: orders[column] }], { column, isDown: false }).map(({ name }) => name).join(" ");
  const wanted = {
    name: "heron owl wren", state: "heron owl wren", free: "owl heron wren", memory: "heron wren owl", gpus: "heron wren owl",
    speed: "heron owl wren", rtt: "owl heron wren", price: "heron wren owl", reliability: "owl wren heron", lender: "heron owl wren",
    earned: "heron wren owl",
  };
  assert.deepEqual(Object.fromEntries(Object.keys(orders).map((column) => [column, by(column)])), wanted);
});
