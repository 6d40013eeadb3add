// The REST API, typed by its OpenAPI file: a path, a parameter or a body that is not there does not compile.
import { heardAt } from "../core/clock";
import { repeatable, type components, type paths } from "./schema";
import { Problem, problemOf, Unreachable } from "./problem";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];
type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends Record<M, infer Found> ? Found : never;
type Parameters<O, In extends string> = O extends { parameters: { [Key in In]?: infer Found } } ? NonNullable<Found> : never;
type BodyOf<O> = O extends { requestBody?: { content: { "application/json": infer Found } } } ? Found : undefined;
type Json<R> = R extends { content: { "application/json": infer Found } } ? Found : undefined;
type AnswerOf<O> = O extends { responses: infer R }
  ? Json<R[Extract<keyof R, 200 | 201 | 204>]>
  : never;

// What is not needed may be left out; what is needed may not.
type Need<Key extends string, Value> = [Value] extends [never]
  ? unknown
  : Value extends undefined
    ? unknown
    : Partial<Value> extends Value
      ? { [K in Key]?: Value }
      : { [K in Key]: Value };
export type Call<M extends Method, P extends PathOf<M>> = Need<"path", Parameters<Operation<M, P>, "path">> &
  Need<"query", Parameters<Operation<M, P>, "query">> &
  Need<"body", BodyOf<Operation<M, P>>> & {
    signal?: AbortSignal;
    key?: string; // a POST under the same key is done once
  };
export type Answer<M extends Method, P extends PathOf<M>> = AnswerOf<Operation<M, P>>;
type Given<M extends Method, P extends PathOf<M>> = Partial<Call<M, P>> extends Call<M, P>
  ? [call?: Call<M, P>]
  : [call: Call<M, P>];

interface Loose {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
  key?: string;
  plain?: { body: BodyInit; type: string }; // instead of a body in JSON
}

const RETRIES_MS = [300, 700, 1500, 3000, 5000];
const TAGGED_MAX = 64;

// The last answers with their ETags: what has not changed is not sent again.
const tagged = new Map<string, { tag: string; body: unknown }>();

function keep(address: string, tag: string | null, body: unknown): void {
  tagged.delete(address);
  if (!tag) return;
  tagged.set(address, { tag, body });
  if (tagged.size > TAGGED_MAX) tagged.delete(tagged.keys().next().value!);
}

export function forgetAnswers(): void {
  tagged.clear();
}

export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(20)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function addressOf(path: string, { path: parts = {}, query = {} }: Loose = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(String(parts[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  return search.size ? `${filled}?${search}` : filled;
}

function headersOf(call: Loose, tag: string | undefined): Headers {
  const headers = new Headers();
  if (call.plain) headers.set("Content-Type", call.plain.type);
  else if (call.body !== undefined) headers.set("Content-Type", "application/json");
  if (call.key) headers.set("Idempotency-Key", call.key);
  if (tag) headers.set("If-None-Match", tag);
  return headers;
}

async function once(method: Method, address: string, call: Loose): Promise<unknown> {
  const known = method === "get" ? tagged.get(address) : undefined; // others' answers may push it out meanwhile
  let response: Response;
  let text: string;
  try {
    response = await fetch(address, {
      method: method.toUpperCase(),
      credentials: "same-origin",
      cache: "no-store",
      headers: headersOf(call, known?.tag),
      body: call.plain?.body ?? (call.body === undefined ? null : JSON.stringify(call.body)),
      signal: call.signal ?? null,
    });
    text = await response.text();
  } catch (failure) {
    if (call.signal?.aborted) throw failure;
    throw new Unreachable();
  }
  heardAt(Date.parse(response.headers.get("Date") ?? ""));
  if (response.status === 304) return known?.body;
  if (!response.ok) throw problemOf(response, text);
  const body: unknown = text ? JSON.parse(text) : undefined;
  if (method === "get") keep(address, response.headers.get("ETag"), body);
  return body;
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

// A market that restarts is back within seconds: what may be repeated is.
function isPassing(failure: unknown): boolean {
  return failure instanceof Unreachable || (failure instanceof Problem && failure.status === 503);
}

let unauthorized: () => void = () => undefined;

// What to do when the session has ended.
export function onUnauthorized(act: () => void): void {
  unauthorized = act;
}

// A wrong password is no end of a session.
const SIGN_IN = "/v1/sessions";

async function request(method: Method, path: string, call: Loose = {}): Promise<unknown> {
  try {
    return await repeated(method, path, call);
  } catch (failure) {
    if (failure instanceof Problem && failure.status === 401 && path !== SIGN_IN) unauthorized();
    throw failure;
  }
}

async function repeated(method: Method, path: string, call: Loose): Promise<unknown> {
  const address = addressOf(path, call);
  const isPost = method === "post";
  const hasKey = isPost && repeatable.has(path);
  const mayRepeat = hasKey || call.plain !== undefined || method === "put" || method === "delete";
  const sent = hasKey ? { ...call, key: call.key ?? newKey() } : call;
  for (const wait of mayRepeat ? RETRIES_MS : []) {
    try {
      return await once(method, address, sent);
    } catch (failure) {
      if (!isPassing(failure)) throw failure;
      await pause(wait);
    }
  }
  return once(method, address, sent);
}

export const get = <P extends PathOf<"get">>(path: P, ...given: Given<"get", P>): Promise<Answer<"get", P>> =>
  request("get", path, given[0] as Loose) as Promise<Answer<"get", P>>;
export const post = <P extends PathOf<"post">>(path: P, ...given: Given<"post", P>): Promise<Answer<"post", P>> =>
  request("post", path, given[0] as Loose) as Promise<Answer<"post", P>>;
// A body that is no JSON, a chunk's bytes or a job file: what it does twice is done once.
interface Plain extends NonNullable<Loose["plain"]> {
  query?: Record<string, string>;
}
export const postPlain = <P extends PathOf<"post">>(path: P, { query = {}, ...plain }: Plain, signal?: AbortSignal): Promise<Answer<"post", P>> =>
  request("post", path, { plain, query, ...(signal ? { signal } : {}) }) as Promise<Answer<"post", P>>;
export const put = <P extends PathOf<"put">>(path: P, ...given: Given<"put", P>): Promise<Answer<"put", P>> =>
  request("put", path, given[0] as Loose) as Promise<Answer<"put", P>>;
export const patch = <P extends PathOf<"patch">>(path: P, ...given: Given<"patch", P>): Promise<Answer<"patch", P>> =>
  request("patch", path, given[0] as Loose) as Promise<Answer<"patch", P>>;
export const remove = <P extends PathOf<"delete">>(path: P, ...given: Given<"delete", P>): Promise<Answer<"delete", P>> =>
  request("delete", path, given[0] as Loose) as Promise<Answer<"delete", P>>;

export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

// All pages of a list up to `max` items: `await all((cursor) => get("/v1/machines", { query: { limit: 500, cursor } }))`.
export async function all<Item>(read: (cursor: string | undefined) => Promise<Page<Item>>, max = 20_000): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && items.length < max);
  return items;
}
