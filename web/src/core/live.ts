// The server's event stream. It tells what to read again and carries the newest metrics; what was missed while away
// is read from the resources themselves, so a missed or doubled event cannot make the page show what is not so.
import { signal } from "@preact/signals";
import type { Schemas } from "../api/client";

export interface Events {
  metric: Schemas["MetricEvent"];
  state: Schemas["StateEvent"];
  bill: Schemas["BillEvent"];
  log: Schemas["LogEvent"];
  account: Schemas["AccountEvent"];
  heartbeat: Schemas["HeartbeatEvent"];
}
export type Topic = "account" | "entries" | "machines" | "leases" | "jobs" | "job" | "metrics" | "prices";
export type Connection = "connecting" | "live" | "reconnecting";

const names = ["metric", "state", "bill", "log", "account", "heartbeat"] as const;
const touches: Record<keyof Events, Topic[]> = {
  metric: ["metrics", "job"],
  state: ["jobs", "job", "machines", "leases", "account", "entries", "metrics"],
  bill: ["account", "entries", "jobs", "job", "machines"],
  log: [],
  account: ["account", "entries", "leases"],
  heartbeat: [],
};
const everything: Topic[] = ["account", "entries", "machines", "leases", "jobs", "job", "metrics", "prices"];
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 8_000;

export const connection = signal<Connection>("connecting");

type Hearer<Name extends keyof Events> = (events: Events[Name][]) => void;
const hearers: { [Name in keyof Events]: Set<Hearer<Name>> } = {
  metric: new Set(), state: new Set(), bill: new Set(), log: new Set(), account: new Set(), heartbeat: new Set(),
};
const waiting: { [Name in keyof Events]: Events[Name][] } = { metric: [], state: [], bill: [], log: [], account: [], heartbeat: [] };
const staleHearers = new Set<(topics: ReadonlySet<Topic>) => void>();
let frame = 0;
let source: EventSource | null = null;
let retry = 0;
let retry_ms = RETRY_MIN_MS;

function deliver<Name extends keyof Events>(name: Name): void {
  const events = waiting[name].splice(0) as Events[Name][];
  if (events.length) hearers[name].forEach((hear) => hear(events));
}

// One delivery a frame, however many events came; the timer is for a page in the background, which has no frames.
function schedule(): void {
  if (frame) return;
  const flush = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = 0;
    names.forEach(deliver);
  };
  const timer = setTimeout(flush, 1000);
  frame = requestAnimationFrame(flush);
}

// What is shown of these is read again: by events, and after what a screen changed without one.
export function mark(topics: Topic[]): void {
  const set = new Set(topics);
  if (set.size) staleHearers.forEach((hear) => hear(set));
}

// Events of this name, at most one call a frame with all that came since. Returns how to stop.
export function hear<Name extends keyof Events>(name: Name, hearer: Hearer<Name>): () => void {
  const set = hearers[name] as Set<Hearer<Name>>;
  set.add(hearer);
  return () => void set.delete(hearer);
}

export function hearStale(hearer: (topics: ReadonlySet<Topic>) => void): () => void {
  staleHearers.add(hearer);
  return () => void staleHearers.delete(hearer);
}

function again(): void {
  source?.close();
  source = null;
  connection.value = "reconnecting";
  clearTimeout(retry);
  retry = window.setTimeout(connect, retry_ms);
  retry_ms = Math.min(retry_ms * 2, RETRY_MAX_MS);
}

function connect(): void {
  source?.close(); // one that was still on its way when the page was hurried
  const stream = new EventSource("/v1/events");
  source = stream;
  stream.onopen = () => {
    retry_ms = RETRY_MIN_MS;
    connection.value = "live";
    mark(everything);
  };
  // The browser's own retry gives up for good at the first answer that is no stream: ours does not.
  stream.onerror = again;
  for (const name of names)
    stream.addEventListener(name, (event: MessageEvent<string>) => {
      if (hearers[name].size) (waiting[name] as unknown[]).push(JSON.parse(event.data));
      mark(touches[name]);
      schedule();
    });
}

function hurry(): void {
  if (!retry || connection.peek() !== "reconnecting" || document.hidden) return;
  clearTimeout(retry);
  retry_ms = RETRY_MIN_MS;
  connect();
}

export function startLive(): () => void {
  connection.value = "connecting";
  connect();
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  return () => {
    removeEventListener("online", hurry);
    document.removeEventListener("visibilitychange", hurry);
    clearTimeout(retry);
    retry = 0;
    source?.close();
    source = null;
  };
}
