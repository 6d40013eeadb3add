// The statement by its filters: the newest entries, and all of them as CSV.
import { addressOf, get, type Schemas } from "../../api/client";
import { readCsv } from "../../api/csv";
import { resourceOf, type Resource } from "../../core/resource";
import type { Entry } from "../../core/store";

export type Kind = Entry["kind"];
export type View = "all" | "paid" | "held";
export const views: readonly View[] = ["all", "paid", "held"];

// What changes what one has, and what is only moved between available and held.
export const kindsOf: Record<View, readonly Kind[]> = {
  all: ["grant", "hold", "post", "fee", "void", "release", "transfer", "reclaim", "refund"],
  paid: ["grant", "post", "fee", "transfer", "release", "reclaim", "refund"],
  held: ["hold", "void"],
};

export interface Filter {
  view: View;
  kind: Kind | ""; // "": all of the view
  job: number; // 0: all
  machine: number; // 0: all; a job goes first
}

export interface Statement {
  entries: Entry[];
  sums: Schemas["StatementSums"] | null;
  hasMore: boolean;
}

export const PAGE = 25;
export const SHOWN_MAX = 20_000; // more is for the CSV
const EVERY_MS = 1000;
const READ_MAX = 500; // a page of the API
const FRESH_MAX = 1000; // came while one looks: after more than that it is begun anew

export function filterOf(query: URLSearchParams): Filter {
  const view = views.find((each) => each === query.get("view")) ?? "all";
  const number = (name: string) => (/^[1-9]\d{0,15}$/.test(query.get(name) ?? "") ? Number(query.get(name)) : 0);
  const job = number("job");
  return { view, kind: kindsOf[view].find((each) => each === query.get("kind")) ?? "", job, machine: job ? 0 : number("machine") };
}

export const isFiltered = (filter: Filter) => filter.view !== "all" || filter.kind !== "" || filter.job > 0 || filter.machine > 0;

function queryOf({ view, kind, job, machine }: Filter) {
  const kinds = kind ? [kind] : view === "all" ? [] : [...kindsOf[view]];
  return { ...(kinds.length ? { kind: kinds } : {}), ...(job ? { job } : {}), ...(machine ? { machine } : {}) };
}

// Entries never change: what was read stays, and only what came since, or is older and asked for, is read.
class Reader {
  private entries: Entry[] = [];
  private cursor: string | undefined; // to what is older than all of them
  private hasBegun = false;
  private sums: Statement["sums"] = null;
  wanted = PAGE;

  constructor(private readonly filter: Filter) {}

  private async page(limit: number, cursor: string | undefined) {
    const page = await get("/v1/account/entries", { query: { ...queryOf(this.filter), limit, cursor } });
    this.sums = page.sums;
    return { items: page.items, next: page.next_cursor ?? undefined };
  }

  // More than it keeps came since: only the newest are read again, as if it were opened now.
  private beginAnew(): void {
    this.entries = [];
    this.cursor = undefined;
    this.hasBegun = false;
  }

  private async readNewer(): Promise<void> {
    const newest = this.entries[0]?.id ?? 0;
    const fresh: Entry[] = [];
    let cursor: string | undefined;
    let isReached = false;
    do {
      const page = await this.page(fresh.length ? READ_MAX : PAGE, cursor);
      fresh.push(...page.items.filter((entry) => entry.id > newest));
      isReached = page.items.some((entry) => entry.id <= newest);
      cursor = page.next;
    } while (cursor && !isReached && fresh.length <= FRESH_MAX);
    if (fresh.length > FRESH_MAX || this.entries.length + fresh.length > this.wanted + FRESH_MAX) this.beginAnew();
    else this.entries.unshift(...fresh);
  }

  // With a filter a page of the API may hold fewer than asked for, even none, and still have a next one.
  private async readOlder(): Promise<void> {
    while (this.entries.length < this.wanted && (this.cursor || !this.hasBegun)) {
      const page = await this.page(Math.min(READ_MAX, this.wanted - this.entries.length), this.cursor);
      this.entries.push(...page.items);
      this.cursor = page.next;
      this.hasBegun = true;
    }
  }

  async read(): Promise<Statement> {
    if (this.entries.length) await this.readNewer();
    await this.readOlder();
    return { entries: [...this.entries], sums: this.sums, hasMore: this.cursor !== undefined };
  }
}

const KEPT_MAX = 32; // as many as there are resources
const readers = new Map<string, Reader>();

function readerOf(key: string): Reader {
  const found = readers.get(key) ?? new Reader((JSON.parse(key) as { filter: Filter }).filter);
  readers.delete(key);
  readers.set(key, found);
  if (readers.size > KEPT_MAX) readers.delete(readers.keys().next().value!);
  return found;
}

const statementOf = resourceOf((key: string) => readerOf(key).read(), ["entries"], { every_ms: EVERY_MS });

export interface Reading {
  resource: Resource<Statement>;
  readMore: () => Promise<void>;
}

// Of an account: what one has read is not shown to the next.
export function statement(owner: number, filter: Filter): Reading {
  const key = JSON.stringify({ owner, filter });
  const found = statementOf(key);
  const readMore = () => {
    readerOf(key).wanted = Math.min(SHOWN_MAX, 2 * Math.max(PAGE, found.data.peek()?.entries.length ?? 0));
    return found.refresh();
  };
  return { resource: found, readMore };
}

export const readStatement = (filter: Filter): Promise<Blob> =>
  readCsv(addressOf("/v1/account/entries", { query: { ...queryOf(filter), format: "csv", limit: READ_MAX } }));
