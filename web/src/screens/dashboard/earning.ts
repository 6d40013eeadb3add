// What this account earns and pays now, from its own statement and its running leases.
import { get, type Schemas } from "../../api/client";
import { resource } from "../../core/resource";
import type { Entry } from "../../core/store";

const HOUR_MS = 3_600_000;
const PAGES_MAX = 4;
const JOBS_MAX = 20; // so many can hardly run at once for one account

export interface Earned {
  microcredits: number;
  span_ms: number; // an hour, or less where there are more payments than are read
}

// What was paid to this account in the last hour: exact, from the ledger.
async function readEarned(): Promise<Earned> {
  const now_ms = Date.now();
  const paid: Entry[] = [];
  let cursor: string | undefined;
  let oldest_ms = now_ms;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await get("/v1/account/entries", { query: { kind: ["post"], limit: 500, cursor } });
    paid.push(...page.items.filter((entry) => entry.direction === "in" && entry.at_ms > now_ms - HOUR_MS));
    oldest_ms = page.items.at(-1)?.at_ms ?? oldest_ms;
    cursor = page.next_cursor ?? undefined;
    if (!cursor || oldest_ms <= now_ms - HOUR_MS) break;
  }
  const isWhole = !cursor || oldest_ms <= now_ms - HOUR_MS;
  return {
    microcredits: paid.reduce((sum, entry) => sum + entry.amount_microcredits, 0),
    span_ms: isWhole ? HOUR_MS : now_ms - oldest_ms,
  };
}

export const earned = resource(readEarned, ["entries"], { every_ms: 3000 });

export interface Costs {
  hourly_microcredits: number;
  isBilled: boolean; // at least one tick
  byJob: ReadonlyMap<number, number>;
}

function hourly(lease: Schemas["Lease"]): number {
  return lease.state === "running" && lease.billed_ms > 0 ? (lease.posted_microcredits / lease.billed_ms) * HOUR_MS : 0;
}

async function readCosts(): Promise<Costs> {
  const running = await get("/v1/jobs", { query: { state: "running", limit: JOBS_MAX } });
  const details = await Promise.all(running.items.map((job) => get("/v1/jobs/{id}", { path: { id: job.id } })));
  const byJob = new Map(details.map((job) => [job.id, job.leases.reduce((sum, lease) => sum + hourly(lease), 0)]));
  const total = [...byJob.values()].reduce((sum, rate) => sum + rate, 0);
  return { hourly_microcredits: total, isBilled: total > 0, byJob };
}

export const costs = resource(readCosts, ["jobs"], { every_ms: 2000 });
