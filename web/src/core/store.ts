// What several screens show: the account, this market, machines, jobs. All of it is read from the API and kept fresh.
import { computed } from "@preact/signals";
import { all, get, type Schemas } from "../api/client";
import { resource, resourceOf } from "./resource";

export type Account = Schemas["Account"];
export type Machine = Schemas["Machine"];
export type Job = Schemas["Job"];
export type Entry = Schemas["Entry"];

export const account = resource(() => get("/v1/account"), ["account"]);
export const server = resource(() => get("/v1/server"), []);
export const prices = resource(() => get("/v1/prices"), ["prices"], { every_ms: 10_000 });
export const myMachines = resource(
  () => all((cursor) => get("/v1/machines", { query: { mine: true, limit: 500, cursor } })),
  ["machines", "leases"], // what runs on them and what it earns
);
export const machines = resource(
  () => all((cursor) => get("/v1/machines", { query: { limit: 500, cursor } })),
  ["machines"],
  { every_ms: (list) => Math.max(1000, 3 * (list?.length ?? 0)) }, // ten thousand are no matter of every second
);
export const jobs = resource(() => get("/v1/jobs", { query: { limit: 50 } }), ["jobs"]);
// Reports come as events, ten a second of each worker; what is read beside them may be a little older.
export const jobOf = resourceOf((id: number) => get("/v1/jobs/{id}", { path: { id } }), ["job"], { every_ms: 1500 });
export const metricsOf = resourceOf(
  (id: number) => get("/v1/jobs/{id}/metrics", { path: { id } }),
  ["metrics"],
  { every_ms: 5000 },
);
// What came and went other than by work.
export const news = resource(
  () => get("/v1/account/entries", { query: { kind: ["grant", "release", "transfer", "reclaim", "refund"], limit: 25 } }),
  ["entries"],
);

// What amounts are called here: credits, or karma in a market without money.
export const unit = computed(() => server.data.value?.economy ?? "credits");

export const hasEnded = (job: Job) => ["succeeded", "failed", "cancelled"].includes(job.state);
