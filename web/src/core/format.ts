// Numbers, dates and times as people read them, in the browser's locale and time zone.
import { common } from "../text/en";

const figures = new Map<string, Intl.NumberFormat>();

function figure(least: number, most: number): Intl.NumberFormat {
  const key = `${least}-${most}`;
  let found = figures.get(key);
  if (!found) {
    found = new Intl.NumberFormat(undefined, { minimumFractionDigits: least, maximumFractionDigits: most });
    figures.set(key, found);
  }
  return found;
}

const NONE = "–";

// One minus sign everywhere, as wide as a plus, whichever the locale has.
const written = (format: Intl.NumberFormat, value: number) => format.format(value).replace("-", "−");

const instant = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
const moment = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", month: "short", day: "numeric" });
const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

// Exact: no digit that counts is left out.
export function credits(microcredits: number): string {
  const digits = microcredits % 10_000 === 0 ? 2 : 6;
  return written(figure(digits, digits), microcredits / 1e6);
}

// For a headline: two digits after the point, and below 1 three that count; cut, never rounded up to what is not there.
export function creditsShort(microcredits: number): string {
  const size = Math.abs(microcredits);
  if (size > 0 && size < 1e6) {
    const step = 10 ** Math.max(0, Math.floor(Math.log10(size)) - 2);
    return written(figure(0, 6), (Math.trunc(microcredits / step) * step) / 1e6);
  }
  return written(figure(2, 2), Math.trunc(microcredits / 10_000) / 100);
}

const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 2 });

// Where there is little room: from 100,000 on three digits that count, cut likewise.
export function creditsCompact(microcredits: number): string {
  const value = Math.abs(microcredits / 1e6);
  if (value < 100_000) return creditsShort(microcredits);
  const step = 10 ** (Math.floor(Math.log10(value)) - 2);
  return written(compact, Math.sign(microcredits) * Math.floor(value / step) * step);
}

export function number(value: number | null | undefined, digits = 0): string {
  return value === null || value === undefined ? NONE : written(figure(digits, digits), value);
}

export function percent(share: number | null | undefined, digits = 1): string {
  return share === null || share === undefined ? NONE : `${written(figure(digits, digits), share * 100)} %`;
}

// Up to two digits after the point: 0.25, 1.5, 8.
export function thousandths(milli: number): string {
  return figure(0, 2).format(milli / 1000);
}

export function cores(milli: number): string {
  return common.cores(thousandths(milli), milli === 1000);
}

export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit++;
  }
  return `${figure(0, size < 10 && unit > 0 ? 1 : 0).format(size)} ${units[unit]}`;
}

export function time(at_ms: number): string {
  return at_ms ? instant.format(at_ms) : NONE;
}

// Without seconds, for what is to come.
export function timeShort(at_ms: number): string {
  return moment.format(at_ms);
}

// Today the time alone.
export function timeSoon(at_ms: number, now_ms: number): string {
  return new Date(at_ms).toDateString() === new Date(now_ms).toDateString() ? clock.format(at_ms) : moment.format(at_ms);
}

export function timeOfDay(at_ms: number): string {
  return clock.format(at_ms);
}

export function date(at_ms: number): string {
  return day.format(at_ms);
}

// "3 min. ago", "in 2 hr."
export function relative(at_ms: number, now_ms: number): string {
  const seconds = Math.round((at_ms - now_ms) / 1000);
  const size = Math.abs(seconds);
  if (size < 60) return ago.format(seconds, "second");
  if (size < 3600) return ago.format(Math.round(seconds / 60), "minute");
  if (size < 86_400) return ago.format(Math.round(seconds / 3600), "hour");
  return ago.format(Math.round(seconds / 86_400), "day");
}

const joined = (whole: number, unit: string, rest: number, small: string) =>
  rest ? `${whole} ${unit} ${rest} ${small}` : `${whole} ${unit}`;

export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return joined(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 172_800) return joined(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  return joined(Math.floor(seconds / 86_400), "d", Math.floor((seconds % 86_400) / 3600), "h");
}

// At most three digits that count, for axes: 5e-6, 0.0012, 0.35, 98.5, 100.
export function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(1).replace(".0e", "e");
  return String(Number(value.toPrecision(3)));
}
