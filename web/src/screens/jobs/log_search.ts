// The lines of one log that have a text in them, found by the market over all of it, and what stands around one of them.
import { signal, type Signal } from "@preact/signals";
import { get } from "../../api/client";
import { hear } from "../../core/live";
import type { Place } from "./log_tail";

const FOUND_STEP = 500; // found at a time; more when asked for
const FOUND_MAX = 5000;
const SHOWN_MAX = 1000; // characters of a found line
const BEFORE_BYTES = 32 << 10;
const AROUND_LINES = 100; // on either side

export interface Found {
  offset: number; // of the line's first byte
  text: string;
}

export class LogSearch {
  readonly told: Signal<number> = signal(0);
  found: Found[] = [];
  problem: Error | null = null;
  isSearching = false;
  isMore = false; // it stopped before the end, as it has found enough
  private next = 0;
  private wanted = FOUND_STEP;
  private isStopped = false;
  private isBehind = false;

  constructor(private readonly place: Place, readonly find: string) {}

  // Until the returned function is called. What is printed meanwhile is searched too.
  start(): () => void {
    const { lease } = this.place;
    const stop = hear("log", (events) => {
      if (events.some((event) => event.lease === lease)) void this.search();
    });
    void this.search();
    return () => {
      this.isStopped = true;
      stop();
    };
  }

  get canFindMore(): boolean {
    return this.isMore && this.wanted < FOUND_MAX;
  }

  more(): Promise<void> {
    this.wanted = Math.min(FOUND_MAX, this.wanted + FOUND_STEP);
    return this.search();
  }

  // From where it is to the end, or until it has found enough. Also after a lost connection.
  async search(): Promise<void> {
    this.isBehind = true;
    if (this.isSearching) return;
    this.isSearching = true;
    this.told.value++;
    try {
      while (this.isBehind && !this.isStopped) {
        this.isBehind = false;
        await this.searchOn();
      }
      this.problem = null;
    } catch (failure) {
      this.problem = failure as Error;
    } finally {
      this.isSearching = false;
      if (!this.isStopped) this.told.value++;
    }
  }

  private async searchOn(): Promise<void> {
    const { job, lease } = this.place;
    this.isMore = this.found.length >= this.wanted;
    while (!this.isMore) {
      const part = await get("/v1/jobs/{id}/logs/lines", { path: { id: job }, query: { lease, find: this.find, offset: this.next } });
      if (this.isStopped || part.next_offset <= this.next) return;
      this.found.push(...part.lines.map(({ offset, text }) => ({ offset, text: text.slice(0, SHOWN_MAX) })));
      this.next = part.next_offset;
      this.isMore = this.found.length >= this.wanted && !part.is_end;
      this.told.value++;
    }
  }
}

export interface Around {
  before: string[];
  line: string;
  after: string[];
}

// An answer ends where a part of the log that is kept does, which may be within a line.
async function readAfter({ job, lease }: Place, offset: number): Promise<string[]> {
  let text = "";
  for (let from = offset; ; ) {
    const part = await get("/v1/jobs/{id}/logs", { path: { id: job }, query: { lease, offset: from } });
    text += part.text;
    const lines = text.split("\n");
    if (part.text === "" || lines.length > AROUND_LINES + 1) return lines;
    from = part.next_offset;
  }
}

export async function readAround(place: Place, offset: number): Promise<Around> {
  const { job, lease } = place;
  const earlier = get("/v1/jobs/{id}/logs", { path: { id: job }, query: { lease, last: BEFORE_BYTES, before: offset } });
  const [{ text }, [line = "", ...after]] = await Promise.all([earlier, readAfter(place, offset)]);
  const before = text.split("\n").slice(0, -1);
  if (after.at(-1) === "") after.pop();
  return { before: before.slice(-AROUND_LINES), line, after: after.slice(0, AROUND_LINES) };
}
