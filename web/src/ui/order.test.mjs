import assert from "node:assert/strict";
import test from "node:test";
import { orderAfter, sorted } from "./order.ts";

const columns = [{ name: "name", sort: (row) => row.name }, { name: "cores", isRight: true, sort: (row) => row.cores }, { name: "act" }];
const rows = [{ name: "wren", cores: 10 }, { name: "heron", cores: 9 }, { name: "Owl", cores: 10 }];
const names = (order) => sorted(rows, columns, order).map(({ name }) => name).join(" ");

test("a column sorts rows either way: words by the alphabet, numbers by size", () => {
  assert.equal(names({ column: "name", isDown: false }), "heron Owl wren");
  assert.equal(names({ column: "name", isDown: true }), "wren Owl heron");
  assert.equal(names({ column: "cores", isDown: false }), "heron wren Owl");
  assert.equal(names({ column: "cores", isDown: true }), "wren Owl heron");
});

test("without an order or a sort key, rows keep their order", () => {
  for (const order of [undefined, { column: "act", isDown: true }, { column: "of the address", isDown: false }])
    assert.equal(sorted(rows, columns, order), rows);
});

test("a head sorts numbers from the highest and words from A, and each click reverses it", () => {
  assert.deepEqual(orderAfter(undefined, columns[0]), { column: "name", isDown: false });
  assert.deepEqual(orderAfter({ column: "name", isDown: false }, columns[0]), { column: "name", isDown: true });
  assert.deepEqual(orderAfter({ column: "name", isDown: true }, columns[1]), { column: "cores", isDown: true });
  assert.deepEqual(orderAfter({ column: "cores", isDown: true }, columns[1]), { column: "cores", isDown: false });
});
