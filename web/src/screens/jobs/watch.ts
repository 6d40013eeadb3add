// What a job's workers do, kept while one looks: each worker's time as shares of the last two minutes, and the curve's
// newest points. Everything here has a maximum, and what is shown is told at most twice a second.
//
// A report has for how long the worker computed, transferred and waited, in all: the difference of two is what happened
// between them.
import { signal, type Signal } from "@preact/signals";
import type { Schemas } from "../../api/client";
import { hear, type Events } from "../../core/live";

export const STRIP_SLOTS = 120;
export const SLOT_MS = 1000;
const TOLD_MS = 500;
const TAIL_MAX = 128;
const LANES_MAX = 1024;

type Metric = Events["metric"];
export type Reported = Schemas["WorkerMetric"];
export type Point = Pick<Schemas["CurvePoint"], "elapsed_ms" | "samples" | "loss" | "test_accuracy">;

export interface Shares {
  compute: number;
  transfer: number;
  wait: number;
}

type Times = Pick<Metric, "at_ms" | "first_step_ms" | "compute_ms" | "transfer_ms" | "wait_ms">;
type Spent = Pick<Times, "compute_ms" | "transfer_ms" | "wait_ms">;

// Over the whole run, or between two reports; null where no time passed. What was taken for waiting may turn out to have
// been a transfer once the answer says so: then there is less waiting than before, and none is shown.
export function sharesOf(now: Spent, before: Spent = { compute_ms: 0, transfer_ms: 0, wait_ms: 0 }): Shares | null {
  const compute_ms = Math.max(0, now.compute_ms - before.compute_ms);
  const transfer_ms = Math.max(0, now.transfer_ms - before.transfer_ms);
  const wait_ms = Math.max(0, now.wait_ms - before.wait_ms);
  const all_ms = compute_ms + transfer_ms + wait_ms;
  return all_ms > 0 ? { compute: compute_ms / all_ms, transfer: transfer_ms / all_ms, wait: wait_ms / all_ms } : null;
}

export class Lane {
  readonly slots = new Float64Array(STRIP_SLOTS); // which second a place holds; 0: none
  readonly compute = new Float32Array(STRIP_SLOTS);
  readonly transfer = new Float32Array(STRIP_SLOTS);
  last: Times;
  before: Shares | null; // of the time before one looked
  steps_per_second: number | null = null;
  commits = 0;
  private base: Times;

  constructor(times: Times) {
    this.last = times;
    this.base = times;
    this.before = sharesOf(times);
  }

  take(report: Metric | Reported): void {
    this.steps_per_second = report.steps_per_second;
    this.commits = report.commits;
    if (report.at_ms <= this.last.at_ms) return;
    // A process that began anew counts from 0 again.
    const isAnew = report.first_step_ms !== this.base.first_step_ms;
    const { at_ms, first_step_ms, compute_ms, transfer_ms, wait_ms } = report;
    this.last = { at_ms, first_step_ms, compute_ms, transfer_ms, wait_ms };
    if (isAnew) this.base = this.last;
    else this.close(this.last);
  }

  private close(now: Times): void {
    const from = Math.floor(this.base.at_ms / SLOT_MS);
    const to = Math.floor(now.at_ms / SLOT_MS);
    if (to <= from || now.first_step_ms === 0) return;
    const shares = sharesOf(now, this.base);
    if (!shares) return;
    for (let slot = Math.max(from, to - STRIP_SLOTS) + 1; slot <= to; slot++) {
      const place = slot % STRIP_SLOTS;
      this.slots[place] = slot;
      this.compute[place] = shares.compute;
      this.transfer[place] = shares.transfer;
    }
    this.base = now;
  }
}

export class Watch {
  readonly told: Signal<number> = signal(0); // moves when there is something new to show
  readonly lanes = new Map<number, Lane>(); // by lease
  slot = 0; // the newest second of all lanes
  private curve: readonly Point[] = [];
  private tail: Point[] = [];
  private told_ms = -Infinity;
  private timer = 0;

  constructor(private readonly job: number) {}

  // Until the returned function is called.
  start(): () => void {
    const stop = hear("metric", (events) => this.take(events));
    return () => {
      stop();
      clearTimeout(this.timer);
      this.timer = 0;
    };
  }

  // What the market knows by now: it replaces what was heard.
  read(metrics: Schemas["Metrics"]): void {
    if (metrics.curve !== this.curve) {
      this.curve = metrics.curve;
      const last_ms = metrics.curve.at(-1)?.elapsed_ms ?? -1;
      this.tail = this.tail.filter((point) => point.elapsed_ms > last_ms);
    }
    const known = new Set(metrics.workers.map((worker) => worker.lease));
    for (const lease of this.lanes.keys()) if (!known.has(lease)) this.lanes.delete(lease);
    metrics.workers.forEach((worker) => this.lane(worker));
    this.tell();
  }

  points(): readonly Point[] {
    return this.tail.length ? [...this.curve, ...this.tail] : this.curve;
  }

  private lane(report: Metric | Reported): void {
    if (report.role !== "worker") return;
    const known = this.lanes.get(report.lease);
    const lane = known ?? new Lane(report);
    if (!known) {
      if (this.lanes.size >= LANES_MAX) return;
      this.lanes.set(report.lease, lane);
    }
    lane.take(report);
    this.slot = Math.max(this.slot, Math.floor(report.at_ms / SLOT_MS));
  }

  private take(events: readonly Metric[]): void {
    let isOurs = false;
    for (const event of events) {
      if (event.job !== this.job) continue;
      isOurs = true;
      if (event.role === "worker") this.lane(event);
      else if (event.rank === 0 && !event.replica) this.point(event);
    }
    if (isOurs) this.tell();
  }

  private point(event: Metric): void {
    const last = this.tail.at(-1) ?? this.curve.at(-1);
    if (event.loss === null && event.test_accuracy === null) return;
    if (last && event.elapsed_ms <= last.elapsed_ms) return;
    this.tail.push({ elapsed_ms: event.elapsed_ms, samples: event.samples, loss: event.loss, test_accuracy: event.test_accuracy });
    if (this.tail.length > TAIL_MAX) this.tail.splice(0, this.tail.length - TAIL_MAX);
  }

  private tell(): void {
    if (this.timer) return;
    const wait_ms = this.told_ms + TOLD_MS - performance.now();
    const now = () => {
      this.timer = 0;
      this.told_ms = performance.now();
      this.told.value++;
    };
    if (wait_ms <= 0) now();
    else this.timer = window.setTimeout(now, wait_ms);
  }
}
