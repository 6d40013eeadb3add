import assert from "node:assert/strict";
import test from "node:test";
import { always, hoursOf, isLent, never, nightsAndWeekends, paint, RANGES_MAX, rangesOf, readWhen, wordsOf } from "./week.ts";

// Seeded, so that a week that fails can be had again.
function weeks(seed, count) {
  let state = seed;
  const next = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 8; // the 24 better bits
  return Array.from({ length: count }, () => Array.from({ length: 7 }, next));
}

test("whole weeks have their words", () => {
  assert.equal(wordsOf(always), "always");
  assert.deepEqual(rangesOf(never), []);
  assert.equal(hoursOf(always), 168);
  assert.equal(hoursOf(never), 0);
});

test("nights go over midnight, and so does the one from Sunday to Monday", () => {
  const friday = readWhen("Fri 22:00-06:00").week;
  assert.ok(isLent(friday, 4, 23) && isLent(friday, 5, 5));
  assert.ok(!isLent(friday, 5, 6) && !isLent(friday, 4, 21));
  const sunday = readWhen("Sun 22:00-06:00").week;
  assert.ok(isLent(sunday, 6, 22) && isLent(sunday, 0, 5) && !isLent(sunday, 0, 6));
  assert.equal(wordsOf(sunday), "Sun 22:00-06:00");
  assert.equal(wordsOf(friday), "Fri 22:00-06:00");
});

test("days with equal hours are said together", () => {
  const evenings = paint(never, { days: [0, 4], hours: [18, 21] }, true);
  assert.equal(wordsOf(evenings), "Mon-Fri 18:00-22:00");
  const without = paint(evenings, { days: [2, 2], hours: [18, 21] }, false);
  assert.equal(wordsOf(without), "Mon-Tue,Thu-Fri 18:00-22:00");
  assert.equal(wordsOf(paint(never, { days: [5, 6], hours: [0, 23] }, true)), "Sat-Sun 00:00-24:00");
  assert.ok(rangesOf(nightsAndWeekends).length <= RANGES_MAX);
  assert.equal(hoursOf(nightsAndWeekends), 5 * 14 + 2 * 24);
  assert.equal(wordsOf(nightsAndWeekends), "Mon-Fri 00:00-08:00; Mon-Fri 18:00-24:00; Sat-Sun 00:00-24:00");
});

test("a stroke may go either way and changes nothing outside it", () => {
  const there = paint(never, { days: [1, 3], hours: [4, 9] }, true);
  assert.deepEqual(paint(never, { days: [3, 1], hours: [9, 4] }, true), there);
  assert.equal(hoursOf(there), 18);
  assert.deepEqual(paint(there, { days: [1, 3], hours: [4, 9] }, false), never);
  assert.deepEqual(never, [0, 0, 0, 0, 0, 0, 0]); // the old week stays as it is
  assert.equal(hoursOf(paint(never, { days: [0, 6], hours: [0, 23] }, true)), 168);
});

test("what whole hours do not say is shown, and said to be inexact", () => {
  const half = readWhen("Mon 08:30-10:15");
  assert.equal(half.isExact, false);
  assert.deepEqual([8, 9, 10, 11].map((hour) => isLent(half.week, 0, hour)), [true, true, true, false]);
  assert.equal(readWhen("2026-11-20 18:00 - 2026-11-21 08:00").isExact, false);
  assert.equal(readWhen("Mon 08:00-10:00").isExact, true);
});

test("every week comes back from its words as it was", () => {
  for (const week of [nightsAndWeekends, always, ...weeks(7, 2000)]) {
    const read = readWhen(wordsOf(week));
    assert.ok(read.isExact, wordsOf(week));
    assert.deepEqual(read.week, [...week], `${JSON.stringify(week)}: ${wordsOf(week)}`);
  }
});

test("a week of few stretches comes back too, whichever hour they begin", () => {
  for (let from = 0; from < 168; from++)
    for (const length of [1, 8, 23, 24, 25, 47, 100, 167]) {
      const week = [...never];
      for (let hour = from; hour < from + length; hour++) week[Math.floor(hour / 24) % 7] |= 1 << hour % 24;
      assert.deepEqual(readWhen(wordsOf(week)).week, week, `${from} for ${length}: ${wordsOf(week)}`);
      assert.ok(rangesOf(week).length <= RANGES_MAX, wordsOf(week));
    }
});
