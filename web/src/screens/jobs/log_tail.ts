// The end of one log: read part by part, then followed by its events. Only the last lines are kept.
import { signal, type Signal } from "@preact/signals";
import { get } from "../../api/client";
import { hear, type Events } from "../../core/live";

const LINES_MAX = 4000;
const LINE_MAX = 8192; // characters: a program may never end its line
const TOLD_MS = 250;

export interface Place {
  job: number;
  lease: number; // not its rank, which another may have later
}

export class LogTail {
  readonly told: Signal<number> = signal(0);
  lines: string[] = [];
  isCut = false;
  problem: Error | null = null;
  isRead = false;
  private next = 0; // the offset that comes next
  private isStopped = false;
  private isReading = false;
  private isBehind = false;
  private timer = 0;

  constructor(private readonly place: Place) {}

  // Until the returned function is called.
  start(): () => void {
    const stop = hear("log", (events) => events.forEach((event) => this.take(event)));
    void this.read();
    return () => {
      this.isStopped = true;
      stop();
      clearTimeout(this.timer);
    };
  }

  // From where it is to the end. Also after a lost connection, whose events are not told again.
  async read(): Promise<void> {
    this.isBehind = true;
    if (this.isReading) return;
    this.isReading = true;
    try {
      while (this.isBehind && !this.isStopped) {
        this.isBehind = false;
        await this.readOn();
      }
      this.problem = null;
    } catch (failure) {
      this.problem = failure as Error;
    } finally {
      this.isReading = false;
      this.isRead = true;
      this.tell();
    }
  }

  private async readOn(): Promise<void> {
    const { job, lease } = this.place;
    for (;;) {
      const part = await get("/v1/jobs/{id}/logs", { path: { id: job }, query: { lease, offset: this.next } });
      if (this.isStopped || part.next_offset <= this.next) return;
      this.add(part.text);
      this.next = part.next_offset;
    }
  }

  private take(event: Events["log"]): void {
    if (event.lease !== this.place.lease) return;
    if (event.offset === this.next && !this.isReading) {
      this.add(event.text);
      this.next = event.next_offset;
      this.tell();
    } else if (event.next_offset > this.next) void this.read();
  }

  private add(text: string): void {
    const fresh = text.split("\n");
    const open = this.lines.pop() ?? "";
    fresh[0] = open + fresh[0]!;
    this.lines.push(...fresh.map((line) => (line.length > LINE_MAX ? line.slice(0, LINE_MAX) : line)));
    if (this.lines.length > LINES_MAX) {
      this.lines.splice(0, this.lines.length - LINES_MAX);
      this.isCut = true;
    }
  }

  private tell(): void {
    if (this.timer || this.isStopped) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.told.value++;
    }, TOLD_MS);
  }
}

// All of it, for a download.
export async function wholeLog({ job, lease }: Place): Promise<string[]> {
  const parts: string[] = [];
  for (let offset = 0; ; ) {
    const part = await get("/v1/jobs/{id}/logs", { path: { id: job }, query: { lease, offset } });
    if (part.next_offset <= offset) return parts;
    parts.push(part.text);
    offset = part.next_offset;
  }
}
