// What this account earns and pays now, from its own statement and its running leases.
import { get, type Schemas } from "../../api/client";
import { marketNow } from "../../core/clock";
import { resource } from "../../core/resource";
import type { Entry, Machine } from "../../core/store";
import { progress } from "../jobs/progress";

const HOUR_MS = 3_600_000;
const PAGES_MAX = 4;
const LOOK_MAX = 20; // jobs that run, machines that work: more are looked at on their own screens

export interface Earned {
  microcredits: number;
  span_ms: number; // an hour, or less where there are more payments than are read
}

// What was paid to this account in the last hour: exact, from the ledger.
async function readEarned(): Promise<Earned> {
  const now_ms = marketNow();
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

type Lease = Schemas["Lease"];
const hourly = (lease: Lease, microcredits: number) =>
  lease.state === "running" && lease.billed_ms > 0 ? (microcredits / lease.billed_ms) * HOUR_MS : 0;
const sumOf = (amounts: readonly number[]) => amounts.reduce((sum, amount) => sum + amount, 0);

export interface Lending {
  machines: Machine[];
  hourly_microcredits: number;
  isWhole: boolean; // nothing that earns was left out
  byMachine: ReadonlyMap<number, number>; // of those that work
}

async function readLending(): Promise<Lending> {
  const mine = await get("/v1/machines", { query: { mine: true, limit: 500 } });
  const busy = mine.items.filter((machine) => machine.lease_count > 0);
  const working = busy.slice(0, LOOK_MAX);
  const leases = await Promise.all(
    working.map(({ id }) => get("/v1/machines/{id}/leases", { path: { id }, query: { state: "running", limit: 100 } })),
  );
  const rates = leases.map((page) => sumOf(page.items.map((lease) => hourly(lease, lease.earned_microcredits))));
  return {
    machines: mine.items,
    hourly_microcredits: sumOf(rates),
    isWhole: busy.length === working.length && mine.next_cursor === null,
    byMachine: new Map(working.map((machine, index) => [machine.id, rates[index]!])),
  };
}

export const lending = resource(readLending, ["machines", "leases"], { every_ms: 2000 });

export interface Running {
  hourly_microcredits: number;
  share: number | null; // of the time it is expected to take
}

export interface Costs {
  hourly_microcredits: number;
  isBilled: boolean; // at least one tick
  isWhole: boolean; // no job that runs was left out
  byJob: ReadonlyMap<number, Running>;
}

async function readCosts(): Promise<Costs> {
  const running = await get("/v1/jobs", { query: { state: "running", limit: LOOK_MAX } });
  const details = await Promise.all(running.items.map((job) => get("/v1/jobs/{id}", { path: { id: job.id } })));
  const byJob = new Map(details.map((job): [number, Running] => [job.id, {
    hourly_microcredits: sumOf(job.leases.map((lease) => hourly(lease, lease.posted_microcredits))),
    share: progress(job, marketNow()),
  }]));
  const total = sumOf([...byJob.values()].map((each) => each.hourly_microcredits));
  return { hourly_microcredits: total, isBilled: total > 0, isWhole: running.next_cursor === null, byJob };
}

export const costs = resource(readCosts, ["jobs"], { every_ms: 2000 });
