// A part of one log: its end at first, followed by its events; what was printed before comes when it is asked for. Of a
// long log a window is kept: who goes up lets go of the end, and gets it back further down.
import { signal, type Signal } from "@preact/signals";
import { get } from "../../api/client";
import { hear, type Events } from "../../core/live";

const STEP_BYTES = 64 << 10; // asked for at once
const WINDOW_MAX = 1 << 20; // characters kept
const PIECE_MAX = 16 << 10; // what comes in small pieces is kept in some of this size
const TOLD_MS = 250;

export interface Place {
  job: number;
  lease: number; // not its rank, which another may have later
}

export interface Piece {
  offset: number;
  next: number;
  text: string;
  breaks: number; // ends of lines in it
}

const breaksOf = (text: string) => text.split("\n").length - 1;
const pieceOf = (offset: number, next: number, text: string): Piece => ({ offset, next, text, breaks: breaksOf(text) });

export class LogTail {
  readonly told: Signal<number> = signal(0);
  pieces: Piece[] = [];
  problem: Error | null = null;
  isRead = false;
  isAtEnd = false; // nothing was printed after what is here
  isHeld = false; // somebody reads: what is above stays, rather than that what is new comes
  private isStopped = false;
  private isReading = false;
  private isBehind = false;
  private isEndWanted = false; // as soon as what is being read is there
  private timer = 0;

  constructor(private readonly place: Place) {}

  // Until the returned function is called.
  start(): () => void {
    const stop = hear("log", (events) => events.forEach((event) => this.take(event)));
    void this.toEnd();
    return () => {
      this.isStopped = true;
      stop();
      clearTimeout(this.timer);
    };
  }

  get first(): number {
    return this.pieces[0]?.offset ?? 0;
  }

  private get next(): number {
    return this.pieces.at(-1)?.next ?? 0;
  }

  get lineCount(): number {
    const text = this.pieces.at(-1)?.text ?? "";
    return this.pieces.reduce((sum, { breaks }) => sum + breaks, 0) + (text === "" || text.endsWith("\n") ? 0 : 1);
  }

  // Its last lines, whatever was shown.
  toEnd(): Promise<void> {
    this.isEndWanted = true;
    return this.reading(() => this.jump());
  }

  private async jump(): Promise<void> {
    this.isEndWanted = false;
    const { offset, next_offset, text } = await this.ask({ last: STEP_BYTES });
    this.pieces = text ? [pieceOf(offset, next_offset, text)] : [];
    this.isAtEnd = true;
  }

  earlier(): Promise<void> {
    return this.reading(async () => {
      if (this.first === 0) return;
      const { offset, next_offset, text } = await this.ask({ last: STEP_BYTES, before: this.first });
      if (text) this.pieces = [pieceOf(offset, next_offset, text), ...this.pieces];
      this.cut(false);
    });
  }

  // What comes after what is here. Also after a lost connection, whose events are not told again.
  later(): Promise<void> {
    this.isBehind = true;
    return this.reading(async () => {
      while (this.isBehind && !this.isStopped) {
        this.isBehind = false;
        await this.readOn();
      }
    });
  }

  // To the end, where it was; one step down where the end was let go of.
  private async readOn(): Promise<void> {
    const isStep = !this.isAtEnd;
    for (let size = 0; size <= WINDOW_MAX; ) {
      const { offset, next_offset, text } = await this.ask({ offset: this.next });
      this.isAtEnd = isStep ? !text : true;
      if (!text) return;
      size += text.length;
      this.push(pieceOf(offset, next_offset, text), isStep || !this.isHeld);
      if (isStep || !this.isAtEnd) return;
    }
    await this.jump(); // so much was printed meanwhile that none of it would stay
  }

  private ask(query: { offset: number } | { last: number; before?: number }) {
    const { job, lease } = this.place;
    return get("/v1/jobs/{id}/logs", { path: { id: job }, query: { lease, ...query } });
  }

  // One at a time.
  private async reading(act: () => Promise<void>): Promise<void> {
    if (this.isReading || this.isStopped) return;
    this.isReading = true;
    try {
      await act();
      this.problem = null;
    } catch (failure) {
      this.problem = failure as Error;
    } finally {
      this.isReading = false;
      this.isRead = true;
      this.tell();
    }
    if (this.isEndWanted) await this.toEnd();
    else if (this.isBehind && this.isAtEnd) await this.later();
  }

  private take(event: Events["log"]): void {
    if (event.lease !== this.place.lease || event.next_offset <= this.next) return;
    if (this.isReading) this.isBehind = true;
    else if (!this.isAtEnd) return;
    else if (event.offset === this.next) {
      this.push(pieceOf(event.offset, event.next_offset, event.text), !this.isHeld);
      this.tellSoon();
    } else void this.later();
  }

  private push(piece: Piece, isFront: boolean): void {
    const last = this.pieces.at(-1);
    if (last && last.text.length + piece.text.length <= PIECE_MAX)
      this.pieces = [...this.pieces.slice(0, -1), pieceOf(last.offset, piece.next, last.text + piece.text)];
    else this.pieces = [...this.pieces, piece];
    this.cut(isFront);
  }

  // At the front, or at the end, which is then not shown any more.
  private cut(isFront: boolean): void {
    let size = this.pieces.reduce((sum, { text }) => sum + text.length, 0);
    let from = 0, to = this.pieces.length;
    while (size > WINDOW_MAX && to - from > 1) size -= this.pieces[isFront ? from++ : --to]!.text.length;
    if (to < this.pieces.length) this.isAtEnd = false;
    this.pieces = this.pieces.slice(from, to);
  }

  private tell(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.isStopped) this.told.value++;
  }

  private tellSoon(): void {
    if (this.timer || this.isStopped) return;
    this.timer = window.setTimeout(() => this.tell(), TOLD_MS);
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
