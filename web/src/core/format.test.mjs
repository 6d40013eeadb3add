import assert from "node:assert/strict";
import test from "node:test";
import { cores, credits, creditsCompact, creditsShort, thousandths } from "./format.ts";

const figure = (text) => Number(text.replaceAll(",", ""));

test("exact amounts lose no digit", () => {
  assert.equal(credits(10_000_000), "10.00");
  assert.equal(credits(10_000_126), "10.000126");
  assert.equal(credits(-1), "−0.000001");
});

test("headlines are cut, never more than there is", () => {
  assert.equal(creditsShort(0), "0.00");
  assert.equal(creditsShort(999_999), "0.999");
  assert.equal(creditsShort(12_359), "0.0123");
  assert.equal(creditsShort(1000), "0.001");
  assert.equal(creditsShort(9), "0.000009");
  assert.equal(creditsShort(1_999_999), "1.99");
  assert.equal(creditsShort(-999_999), "−0.999");
  for (let amount = 1; amount < 3e12; amount = amount * 3 + 7) {
    assert.ok(figure(creditsShort(amount)) * 1e6 <= amount + 1e-3, String(amount));
    assert.ok(figure(creditsShort(amount)) * 1e6 > amount * 0.98, String(amount));
  }
});

test("where there is little room three digits that count are left", () => {
  assert.equal(creditsCompact(99_999_990_000), "99,999.99");
  assert.equal(creditsCompact(1_239_999_000_000), "1.23M");
});

test("parts of a core are not rounded to what nobody lent", () => {
  assert.equal(thousandths(250), "0.25");
  assert.equal(thousandths(1500), "1.5");
  assert.equal(thousandths(8000), "8");
  assert.equal(cores(1000), "1 core");
  assert.equal(cores(250), "0.25 cores");
});
