// A resource: something read from the API that stays fresh while a screen shows it.
//
// Live events mark topics as stale; what is on the screen is then read again, at most once per `every_ms`, never twice at
// a time. What no screen shows is read when one does, and shown as it was until then. A failed read keeps what is there
// and is tried again, unless the market says that there is no such thing.
import { signal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Problem, Unreachable } from "../api/problem";
import { connection, hearStale, type Topic } from "./live";

export interface Resource<Value> {
  readonly data: Signal<Value | undefined>;
  readonly problem: Signal<Error | null>;
  readonly topics: ReadonlySet<Topic>;
  refresh(): Promise<void>; // now, and after what is under way
  show(): () => void; // keeps it fresh until the returned function is called
}

interface Options<Value> {
  every_ms?: number | ((value: Value | undefined) => number);
}

const EVERY_MS = 500;
const RETRY_MS = 2000;
interface Registered {
  isShown(): boolean;
  mark(topics: ReadonlySet<Topic>): void;
  clear(): void;
}
const isMissing = (failure: unknown) => failure instanceof Problem && failure.status === 404;
const registered = new Map<Resource<unknown>, Registered>();

hearStale((topics) => registered.forEach((each) => each.mark(topics)));

export function clearResources(): void {
  registered.forEach((each) => each.clear());
}

export function resource<Value>(read: () => Promise<Value>, topics: Topic[], options: Options<Value> = {}): Resource<Value> {
  const { every_ms = EVERY_MS } = options;
  const every = () => (typeof every_ms === "function" ? every_ms(data.peek()) : every_ms);
  const data = signal<Value | undefined>(undefined);
  const problem = signal<Error | null>(null);
  const touched = new Set(topics);
  let shown = 0;
  let isStale = true;
  let begun_ms = -Infinity;
  let running: Promise<void> | null = null;
  let timer = 0;
  let round = 0; // of clear(): an answer to a question of the session before is not shown

  const run = async () => {
    const asked = round;
    isStale = false;
    begun_ms = performance.now();
    let wait_ms = 0;
    try {
      const value = await read();
      if (asked !== round) return;
      data.value = value;
      problem.value = null;
    } catch (failure) {
      if (asked !== round) return;
      // What is not there is asked for again when an event tells of it, or when it is shown anew.
      wait_ms = isMissing(failure) && !isStale ? Infinity : RETRY_MS;
      problem.value = failure as Error;
      isStale = true;
    } finally {
      running = null;
      if (isStale && shown > 0 && wait_ms < Infinity) later(wait_ms);
    }
  };
  const later = (least_ms: number) => {
    if (timer || running) return;
    const wait_ms = Math.max(least_ms, begun_ms + every() - performance.now());
    timer = window.setTimeout(() => {
      timer = 0;
      if (shown > 0 && !running) running = run();
    }, Math.max(0, wait_ms));
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
  };
  const made: Resource<Value> = {
    data,
    problem,
    topics: touched,
    refresh: async () => {
      stop();
      if (running) await running;
      running ??= run();
      await running;
    },
    show: () => {
      shown++;
      if (isStale && !running) {
        stop();
        running = run();
      }
      return () => {
        shown--;
        if (shown === 0) stop();
      };
    },
  };
  registered.set(made as Resource<unknown>, {
    isShown: () => shown > 0,
    mark: (stale) => {
      if (![...stale].some((topic) => touched.has(topic))) return;
      isStale = true;
      if (shown > 0) later(0);
    },
    clear: () => {
      stop();
      round++;
      isStale = true;
      data.value = undefined;
      problem.value = null;
    },
  });
  return made;
}

// One resource per key (an id, a query), the last `KEPT_MAX` of them: `const jobOf = resourceOf((id: number) => …, ["job"])`.
const KEPT_MAX = 32;
export function resourceOf<Key extends string | number, Value>(
  read: (key: Key) => Promise<Value>,
  topics: Topic[],
  options: Options<Value> = {},
): (key: Key) => Resource<Value> {
  const kept = new Map<Key, Resource<Value>>();
  return (key) => {
    const found = kept.get(key) ?? resource(() => read(key), topics, options);
    kept.delete(key);
    kept.set(key, found);
    for (const [old, unused] of kept) {
      if (kept.size <= KEPT_MAX) break;
      if (old === key || registered.get(unused as Resource<unknown>)?.isShown()) continue;
      kept.delete(old);
      registered.delete(unused as Resource<unknown>);
    }
    return found;
  };
}

// What a screen shows: undefined until it is there first. That the market is away stands once, above all screens.
export function useResource<Value>(shown: Resource<Value>): { data: Value | undefined; problem: Error | null } {
  useEffect(() => shown.show(), [shown]);
  const problem = shown.problem.value;
  const isSaid = problem instanceof Unreachable && connection.value === "reconnecting";
  return { data: shown.data.value, problem: isSaid ? null : problem };
}
