// What a lease is called, and what jobs measure themselves by.
import type { Schemas } from "../../api/client";
import { number, percent } from "../../core/format";
import type { Job } from "../../core/store";
import { jobs as words } from "../../text/en";

interface Ranked {
  role: "worker" | "server";
  rank: number;
  replica: boolean;
}

export function roleName({ role, rank, replica }: Ranked): string {
  return replica ? words.roles.replica : words.roles[role](rank);
}

// As the log's ?rank= takes it.
function rankName({ role, rank, replica }: Ranked): string {
  if (replica) return "replica";
  if (role === "worker") return String(rank);
  return rank > 0 ? `server-${rank}` : "server";
}

// Why it ended, where it did not end well: in its own words, or by its exit code.
export function whyEnded({ reason, exit_code }: Schemas["Lease"]): string {
  return reason || (exit_code !== 0 ? words.leases.exit(exit_code) : "");
}

// What a lease's log is called in the address: the newest lease of a rank has the rank's name, those before it a number.
export function logName(leases: readonly Schemas["Lease"][], lease: Schemas["Lease"]): string {
  const rank = rankName(lease);
  const isNewest = leases.every((other) => other.id <= lease.id || rankName(other) !== rank);
  return isNewest ? rank : `lease ${lease.id}`;
}

// Parameter servers first, then the replica, then workers by their rank.
export function byRole(a: Ranked, b: Ranked): number {
  const order = (lease: Ranked) => (lease.role === "worker" ? 2 : lease.replica ? 1 : 0);
  return order(a) - order(b) || a.rank - b.rank;
}

// "3 workers", "2–4 workers"; of one that runs with others than it asked for "2 of 2–4 workers", by a schedule "2 of 3 (1–4) workers".
export function workersOf(job: Job): string {
  const isElastic = job.num_nodes_max > job.num_nodes;
  const wanted = isElastic ? `${job.num_nodes}–${job.num_nodes_max}` : `${job.num_nodes}`;
  const isTold = job.state === "running" && job.worker_count > 0 && (isElastic || job.worker_count !== job.num_nodes);
  const most = job.workers_wanted > 0 ? `${job.workers_wanted} (${wanted})` : wanted;
  return words.workers(isTold ? words.of(job.worker_count, most) : wanted, wanted === "1");
}

// Its measure is R², which is no share of anything and below 0 where the mean would tell better.
export const predictsNumbers = (job: Job) => job.predict === "number";
export const accuracy = (job: Job) => (predictsNumbers(job) ? number(job.test_accuracy, 4) : percent(job.test_accuracy));
