// A week of 7 x 24 hours and an offer's `when` ("Mon-Fri 18:00-08:00; Sat-Sun 00:00-24:00"), both ways.

export const DAYS = 7;
export const HOURS = 24;
const WEEK_HOURS = DAYS * HOURS;
const FULL_DAY = 2 ** HOURS - 1;
export const RANGES_MAX = 8; // of one `when`

const dayWords = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

// Seven days from Monday on; bit h of a day: lent from hour h to h + 1.
export type Week = readonly number[];

export const always: Week = new Array<number>(DAYS).fill(FULL_DAY);
export const never: Week = new Array<number>(DAYS).fill(0);
export const nightsAndWeekends: Week = readWhen("Mon-Sun 18:00-08:00; Sat-Sun 00:00-24:00").week;

export const isLent = (week: Week, day: number, hour: number) => (week[day]! & (1 << hour)) !== 0;

export function hoursOf(week: Week): number {
  return week.reduce((sum, bits) => sum + bits.toString(2).replaceAll("0", "").length, 0);
}

export interface Area {
  days: [number, number];
  hours: [number, number]; // the last included, as of days
}

export function paint(week: Week, { days, hours }: Area, isOn: boolean): Week {
  const [first, last] = [Math.min(...hours), Math.max(...hours)];
  const bits = (2 ** (last - first + 1) - 1) * 2 ** first;
  return week.map((day, index) => {
    if (index < Math.min(...days) || index > Math.max(...days)) return day;
    return isOn ? day | bits : day & ~bits;
  });
}

function daysOf(words: string): number[] {
  return words.split(",").flatMap((part) => {
    const [first = -1, last = first] = part.split("-").map((word) => dayWords.indexOf(word));
    return Array.from({ length: last - first + 1 }, (_none, index) => first + index);
  });
}

// Exact unless the words name dates, or times within an hour: such an hour is then shown as lent.
export function readWhen(when: string): { week: Week; isExact: boolean } {
  if (when === "always") return { week: always, isExact: true };
  const week = [...never];
  let isExact = true;
  for (const part of when.split("; ")) {
    const found = /^([A-Za-z,-]+) (\d\d):(\d\d)(:\d\d)?-(\d\d):(\d\d)(:\d\d)?$/.exec(part);
    if (!found) {
      isExact = false;
      continue;
    }
    const [, days, fromHour, fromMinute, fromSecond, untilHour, untilMinute, untilSecond] = found;
    const isWhole = fromMinute === "00" && untilMinute === "00" && !fromSecond && !untilSecond;
    isExact &&= isWhole;
    const from = Number(fromHour);
    const until = Number(untilHour) + (untilMinute !== "00" || untilSecond ? 1 : 0);
    const isNextDay = `${untilHour}:${untilMinute}${untilSecond ?? ""}` <= `${fromHour}:${fromMinute}${fromSecond ?? ""}`;
    for (const day of daysOf(days!))
      for (let hour = from; hour < until + (isNextDay ? HOURS : 0); hour++)
        week[(day + Math.floor(hour / HOURS)) % DAYS]! |= 1 << hour % HOURS;
  }
  return { week, isExact };
}

interface Span {
  day: number;
  from: number;
  until: number; // at most `from`: on the next day
}

function spansByDay(week: Week): Span[] {
  return week.flatMap((_bits, day) => {
    const spans: Span[] = [];
    for (let hour = 0; hour < HOURS; hour++) {
      if (!isLent(week, day, hour)) continue;
      const last = spans.at(-1);
      if (last?.until === hour) last.until++;
      else spans.push({ day, from: hour, until: hour + 1 });
    }
    return spans;
  });
}

// A stretch goes on over midnight where it is shorter than a day; a longer one is cut there.
function spansOverNight(week: Week): Span[] {
  const at = (hour: number) => isLent(week, Math.floor(hour / HOURS) % DAYS, hour % HOURS);
  const closed = Array.from({ length: WEEK_HOURS }, (_none, hour) => hour).find((hour) => !at(hour));
  if (closed === undefined) return spansByDay(week);
  const spans: Span[] = [];
  const cut = (from: number, until: number) => {
    const day = Math.floor(from / HOURS) % DAYS;
    const begin = from % HOURS;
    const isWhole = begin + until - from <= HOURS || until - from < HOURS;
    const end = isWhole ? until : from - begin + HOURS;
    spans.push({ day, from: begin, until: begin + end - from > HOURS ? end % HOURS : begin + end - from });
    if (!isWhole) cut(end, until);
  };
  let begun = -1;
  for (let hour = closed; hour <= closed + WEEK_HOURS; hour++) {
    if (at(hour) && begun < 0) begun = hour;
    if (!at(hour) && begun >= 0) {
      cut(begun, hour);
      begun = -1;
    }
  }
  return spans;
}

function wordsOfDays(days: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const day of [...days].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && last[1] === day - 1) last[1] = day;
    else parts.push([day, day]);
  }
  return parts.map(([first, last]) => (first === last ? dayWords[first] : `${dayWords[first]}-${dayWords[last]}`)).join(",");
}

function group(spans: readonly Span[]): string[] {
  const clock = (hour: number) => `${String(hour).padStart(2, "0")}:00`;
  const byTimes = new Map<string, number[]>();
  for (const { day, from, until } of spans) {
    const times = `${clock(from)}-${clock(until)}`;
    byTimes.set(times, [...(byTimes.get(times) ?? []), day]);
  }
  return [...byTimes]
    .sort(([a, daysA], [b, daysB]) => Math.min(...daysA) - Math.min(...daysB) || a.localeCompare(b))
    .map(([times, days]) => `${wordsOfDays(days)} ${times}`);
}

// The fewest ranges that say the week; more than RANGES_MAX, or none, the market does not take.
export function rangesOf(week: Week): string[] {
  if (week.every((bits) => bits === FULL_DAY)) return ["always"];
  const [byDay, overNight] = [group(spansByDay(week)), group(spansOverNight(week))];
  return overNight.length <= byDay.length ? overNight : byDay;
}

export const wordsOf = (week: Week) => rangesOf(week).join("; ");
