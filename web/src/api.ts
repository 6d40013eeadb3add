// The part of the REST API (docs/openapi/openapi.json) that the page uses.
import type { Economy } from "./unit";

export interface Account {
  id: number;
  name: string;
  available_microcredits: number;
  held_microcredits: number;
  earned_microcredits: number;
  withheld_microcredits: number;
  spent_microcredits: number;
  grant: "none" | "waiting" | "given";
  frozen: string;
}

export interface Server {
  economy: Economy;
  url: string;
}

export interface MachineCode {
  code: string;
  expires_ms: number;
  fingerprint: string;
}

export interface Machine {
  id: number;
  name: string;
  account_name: string;
  is_mine: boolean;
  state: "online" | "unreachable" | "offline";
  yield: "none" | "low" | "frozen" | "paused" | "draining" | "paused_remotely";
  availability: "free" | "busy" | "paused" | "unreachable" | "offline";
  probe: { cores_milli: number; speed_weight_milli: number; ram_bytes: number; rtt_us: number; cpu_model?: string };
  offer: { cores_milli: number; ram_bytes: number; roles: string[]; paused: boolean };
  free: { cores_milli: number; ram_bytes: number };
  offer_state: "none" | "open" | "closed" | "paused";
  offer_state_until_ms: number;
  leased_cores_milli: number;
  lease_count: number;
  earned_microcredits: number;
  reputation: { reliability_milli: number };
}

export type JobState = "pending" | "starting" | "running" | "stopping" | "succeeded" | "failed" | "cancelled";

export interface Job {
  id: number;
  name: string;
  state: JobState;
  reason: string;
  num_nodes: number;
  num_nodes_max: number;
  worker_count: number;
  policy: string;
  model: string;
  predict: string;
  created_ms: number;
  started_ms: number;
  ended_ms: number;
  held_microcredits: number;
  spent_microcredits: number;
  quoted_microcredits: number;
  loss: number | null;
  test_accuracy: number | null;
  samples: number;
}

export interface Worker {
  lease: number;
  role: "worker" | "server";
  rank: number;
  machine_name: string;
  steps: number;
  commits: number;
  loss: number | null;
  steps_per_second: number | null;
  share: number | null;
  codec: string;
}

export interface CurvePoint {
  elapsed_ms: number;
  loss: number | null;
  test_accuracy: number | null;
}

export interface Metrics {
  job: number;
  loss: number | null;
  test_accuracy: number | null;
  policy_in_force: string;
  policy_reason: string;
  workers: Worker[];
  curve: CurvePoint[];
}

export interface Entry {
  id: number;
  at_ms: number;
  kind: "grant" | "hold" | "post" | "fee" | "void" | "release" | "transfer" | "reclaim" | "refund";
  amount_microcredits: number;
  direction: "in" | "out" | "inside";
  job: number;
}

interface List<Item> {
  items: Item[];
  next_cursor: string | null;
}

// What the server refused, in its own words (RFC 9457).
export class Problem extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

async function call<Result>(method: string, path: string, body?: unknown): Promise<Result> {
  const response = await fetch(path, {
    method,
    credentials: "same-origin",
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) {
    let detail = `${response.status} ${response.statusText}`;
    try {
      detail = (JSON.parse(text) as { detail?: string }).detail ?? detail;
    } catch {
      // Not a problem document: the status line says what there is to say.
    }
    throw new Problem(response.status, detail);
  }
  return (text ? JSON.parse(text) : undefined) as Result;
}

export const api = {
  signIn: (code: string) => call<unknown>("POST", "/v1/sessions", { code }),
  signInByPassword: (name: string, password: string) =>
    call<unknown>("POST", "/v1/sessions", { name, password }),
  signUp: (name: string, password: string, invite: string) =>
    call<unknown>("POST", "/v1/accounts", { name, password, session: true, ...(invite ? { invite } : {}) }),
  signOut: () => call<void>("DELETE", "/v1/sessions"),
  server: () => call<Server>("GET", "/v1/server"),
  account: () => call<Account>("GET", "/v1/account"),
  machineCode: () => call<MachineCode>("POST", "/v1/machines/codes"),
  machines: () => call<List<Machine>>("GET", "/v1/machines?limit=200"),
  pause: (machine: number) => call<Machine>("POST", `/v1/machines/${machine}/pause`),
  resume: (machine: number) => call<Machine>("POST", `/v1/machines/${machine}/resume`),
  jobs: () => call<List<Job>>("GET", "/v1/jobs?limit=50"),
  metrics: (job: number) => call<Metrics>("GET", `/v1/jobs/${job}/metrics`),
  entries: (cursor?: string) =>
    call<List<Entry>>("GET", `/v1/account/entries?limit=25${cursor ? `&cursor=${cursor}` : ""}`),
  cancel: (job: number) => call<unknown>("POST", `/v1/jobs/${job}/cancel`),
};
