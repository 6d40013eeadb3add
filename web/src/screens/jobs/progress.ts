// How far a job is, as `souk job wait` shows it: by time; a job that is not done is never shown as done.
import type { Schemas } from "../../api/client";

type Detail = Schemas["JobDetail"];

const UNITS_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

// "1h30m" of a job file; 0: not given.
export function durationOf(words: unknown): number {
  if (typeof words === "number") return words * 1000;
  if (typeof words !== "string") return 0;
  let sum_ms = 0;
  for (const [, amount, unit] of words.matchAll(/([\d.]+)\s*(ms|s|m|h|d)?/g)) sum_ms += Number(amount) * UNITS_MS[unit ?? "s"]!;
  return sum_ms;
}

type Part = Record<string, unknown>;

// With a target a job ends when that is reached, but not before its least time: the better guess then.
export function expectedMs(job: Detail): number {
  const limits = (job.spec.market ?? {}) as Part;
  const target = ((job.spec.train ?? {}) as Part).target as Part | undefined;
  const least_ms = target ? durationOf(target.min_time) : 0;
  return least_ms || durationOf(limits.expected_run_time) || durationOf(limits.max_run_time);
}

export function elapsedMs(job: Schemas["Job"], now_ms: number): number {
  return job.started_ms ? Math.max(0, (job.ended_ms || now_ms) - job.started_ms) : 0;
}

// null: it has not begun, or it ended before it was done.
export function progress(job: Detail, now_ms: number): number | null {
  if (job.state === "succeeded") return 1;
  if (job.ended_ms || !job.started_ms) return null;
  const expected_ms = expectedMs(job);
  return expected_ms > 0 ? Math.min(0.99, elapsedMs(job, now_ms) / expected_ms) : null;
}

// How often it has seen all of its data; null: it trains on none that the market knows.
export function epochsDone(job: Detail): number | null {
  const records = job.spec.inputs?.find((input) => input.split === "train" || input.split === "all")?.records;
  return records ? job.samples / records : null;
}

export function epochsWanted(job: Detail): number {
  return Number(((job.spec.train ?? {}) as Part).epochs ?? 0);
}
