import assert from "node:assert/strict";
import { test } from "node:test";
import { heardAt, marketNow } from "./clock";

const DAY_MS = 86_400_000;

test("a wrong, reset or slow clock does not matter once the market was heard", ({ mock }) => {
  let count_ms = 0;
  let date_ms = 1_700_000_000_000;
  mock.method(Date, "now", () => date_ms);
  mock.method(performance, "now", () => count_ms);
  assert.equal(marketNow(), 1_700_000_000_000); // nothing heard: this computer's
  heardAt(1_700_000_000_000 - 40 * DAY_MS);
  count_ms += 2000.4;
  assert.equal(marketNow(), 1_700_000_002_000 - 40 * DAY_MS); // in whole milliseconds
  date_ms = 1_800_000_000_000;
  assert.equal(marketNow(), 1_700_000_002_000 - 40 * DAY_MS);

  heardAt(1_700_000_001_000 - 40 * DAY_MS); // an answer that was long on its way
  heardAt(Number.NaN); // and one that says nothing
  assert.equal(marketNow(), 1_700_000_002_000 - 40 * DAY_MS);
  heardAt(1_700_000_002_900 - 40 * DAY_MS); // one that says more
  assert.equal(marketNow(), 1_700_000_002_900 - 40 * DAY_MS);
  heardAt(1_600_000_000_000); // the market's clock itself was set back
  assert.equal(marketNow(), 1_600_000_000_000);
});
