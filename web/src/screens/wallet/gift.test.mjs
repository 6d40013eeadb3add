import assert from "node:assert/strict";
import test from "node:test";
import { wrongs } from "./gift.ts";

const ada = { name: "ada", transferable_microcredits: 2_000_000 };
const wrong = (to, amount, memo = "") => wrongs({ to, amount, memo, key: "" }, ada, "credits");
const good = { to: "", amount_microcredits: "", memo: "" };

test("a gift that one can afford goes to another account", () => {
  assert.deepEqual(wrong("bob", "2"), good);
  assert.deepEqual(wrong("bob", "0.000001", "é".repeat(31) + "x"), good); // 63 bytes
});

test("a gift needs a valid name of another account", () => {
  for (const name of ["", "Bob", "x".repeat(41), "<b>"]) assert.match(wrong(name, "1").to, /A name has/);
  assert.match(wrong("ada", "1").to, /your own/);
});

test("an amount is positive, exact, and within the limit of a gift", () => {
  for (const amount of ["", "0", "-1", "much"]) assert.match(wrong("bob", amount).amount_microcredits, /More than 0/);
  assert.match(wrong("bob", "1.1234567").amount_microcredits, /six digits/);
  assert.match(wrong("bob", "2.000001").amount_microcredits, /at most/i);
});

test("a memo has at most 63 bytes, however many letters", () => {
  assert.match(wrong("bob", "1", "é".repeat(32)).memo, /At most 63/);
});
