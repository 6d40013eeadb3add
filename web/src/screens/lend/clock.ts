// Days and hours of any week, as the browser's locale has them (12 or 24 h).
const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", timeZone: "UTC" });
const weekdays = {
  short: new Intl.DateTimeFormat(undefined, { weekday: "short", timeZone: "UTC" }),
  long: new Intl.DateTimeFormat(undefined, { weekday: "long", timeZone: "UTC" }),
};
const MONDAY_MS = Date.UTC(2024, 0, 1);
const HOUR_MS = 3_600_000;

export const hourName = (hour: number) => clock.format(MONDAY_MS + hour * HOUR_MS);
export const dayName = (day: number, length: "short" | "long") => weekdays[length].format(MONDAY_MS + day * 24 * HOUR_MS);
export const browserZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

// The next midnight of the person who looks at the page.
export function tomorrow_ms(now_ms: number): number {
  const midnight = new Date(now_ms);
  midnight.setHours(24, 0, 0, 0);
  return midnight.getTime();
}
