// The statement by its filters: the newest entries, and all of them as CSV.
import { addressOf, get, type Schemas } from "../../api/client";
import { readCsv } from "../../api/csv";
import { resourceOf } from "../../core/resource";
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
export const SHOWN_MAX = 2000; // more is for the CSV
const READ_MAX = 500; // a page of the API

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

// With a filter a page of the API may hold fewer than asked for, even none, and still have a next one.
async function read(filter: Filter, count: number): Promise<Statement> {
  const entries: Entry[] = [];
  let sums: Statement["sums"] = null;
  let cursor: string | undefined;
  do {
    const limit = Math.min(READ_MAX, count - entries.length);
    const page = await get("/v1/account/entries", { query: { ...queryOf(filter), limit, cursor } });
    entries.push(...page.items);
    sums = page.sums;
    cursor = page.next_cursor ?? undefined;
  } while (cursor && entries.length < count);
  return { entries, sums, hasMore: cursor !== undefined };
}

const statementOf = resourceOf((key: string) => {
  const { filter, count } = JSON.parse(key) as { filter: Filter; count: number };
  return read(filter, count);
}, ["entries"]);

export const statement = (filter: Filter, count: number) => statementOf(JSON.stringify({ filter, count }));

export const readStatement = (filter: Filter): Promise<Blob> =>
  readCsv(addressOf("/v1/account/entries", { query: { ...queryOf(filter), format: "csv", limit: READ_MAX } }));
