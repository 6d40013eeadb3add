// Where the person is: the part of the address after "#/". The server need not know it, and #code= stays for signing in.
import { signal } from "@preact/signals";

export interface Route {
  screen: string; // "jobs"
  rest: string[]; // ["7", "logs"]
  query: URLSearchParams;
}

function parse(): Route {
  const hash = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  const [path = "", search = ""] = hash.split("?", 2);
  const [screen = "", ...rest] = path.split("/").filter(Boolean).map(decode);
  return { screen, rest, query: new URLSearchParams(search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray % is a person's typing, not an error
  }
}

export const route = signal<Route>(parse());

addEventListener("hashchange", () => {
  const before = route.peek().screen;
  route.value = parse();
  if (route.peek().screen !== before) scrollTo(0, 0);
});

export function link(screen: string, ...rest: (string | number)[]): string {
  return `#/${[screen, ...rest].map((part) => encodeURIComponent(part)).join("/")}`;
}

export function go(address: string): void {
  location.hash = address.replace(/^#/, "");
}

// Replaces the query (filters, sort, tab) without a step in the browser's history.
export function setQuery(changes: Record<string, string | undefined>): void {
  const query = new URLSearchParams(route.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const path = location.hash.split("?", 1)[0] || "#/";
  history.replaceState(null, "", query.size ? `${path}?${query}` : path);
  route.value = parse();
}
