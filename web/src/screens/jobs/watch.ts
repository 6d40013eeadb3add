// What a job's workers do, kept while one looks: each worker's time as shares of the last two minutes, and the curve's
// newest points. Everything here has a maximum, and what is shown is told at most twice a second.
//
// A report has how long the worker stood still for an answer and how long its pushes were under way, both in all: the
// difference of two reports is what happened between them. What it did not stand still it computed; of the time it stood
// still, as much as a push was under way was transfer, the rest was waiting for others.
import { signal, type Signal } from "@preact/signals";
import type { Schemas } from "../../api/client";
import { hear, type Events } from "../../core/live";

export const STRIP_SLOTS = 120;
export const SLOT_MS = 1000;
const TOLD_MS = 500;
const TAIL_MAX = 512;
const LANES_MAX = 1024;

type Metric = Events["metric"];
export type Reported = Schemas["WorkerMetric"];
export type Point = Pick<Schemas["CurvePoint"], "elapsed_ms" | "samples" | "loss" | "test_accuracy">;

export interface Shares {
  compute: number;
  transfer: number;
  wait: number;
  push: number; // of the time an update was under way, whether it stood still for it or not
}

type Times = Pick<Metric, "at_ms" | "first_step_ms" | "waiting_ms" | "push_ms">;

function sharesOf(span_ms: number, waiting_ms: number, push_ms: number): Shares {
  const stood = Math.min(1, Math.max(0, waiting_ms / span_ms));
  const push = Math.min(1, Math.max(0, push_ms / span_ms));
  const transfer = Math.min(stood, push);
  return { compute: 1 - stood, transfer, wait: stood - transfer, push };
}

// Over the whole run; null before the first step.
export function meanShares({ at_ms, first_step_ms, waiting_ms, push_ms }: Times): Shares | null {
  return first_step_ms > 0 && at_ms > first_step_ms ? sharesOf(at_ms - first_step_ms, waiting_ms, push_ms) : null;
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
    this.before = meanShares(times);
  }

  take(report: Metric | Reported): void {
    this.steps_per_second = report.steps_per_second;
    this.commits = report.commits;
    if (report.at_ms <= this.last.at_ms) return;
    // A process that began anew counts from 0 again.
    const isAnew = report.waiting_ms < this.base.waiting_ms || report.first_step_ms !== this.base.first_step_ms;
    this.last = { at_ms: report.at_ms, first_step_ms: report.first_step_ms, waiting_ms: report.waiting_ms, push_ms: report.push_ms };
    if (isAnew) this.base = this.last;
    else this.close(this.last);
  }

  private close(now: Times): void {
    const from = Math.floor(this.base.at_ms / SLOT_MS);
    const to = Math.floor(now.at_ms / SLOT_MS);
    if (to <= from || now.first_step_ms === 0) return;
    const span_ms = now.at_ms - this.base.at_ms;
    const shares = sharesOf(span_ms, now.waiting_ms - this.base.waiting_ms, now.push_ms - this.base.push_ms);
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
