// What the market says in plain text.
import { problemOf, Unreachable } from "./problem";

export async function readPlain(address: string): Promise<string> {
  const response = await fetch(address, { credentials: "same-origin", cache: "no-store" }).catch(() => {
    throw new Unreachable();
  });
  const text = await response.text();
  if (!response.ok) throw problemOf(response, text);
  return text;
}

// The gauges and counters of /metrics that have no labels, without the "souk_" before their names.
export function metricsOf(text: string): ReadonlyMap<string, number> {
  return new Map([...text.matchAll(/^souk_(\w+) (\S+)$/gm)].map(([, name, value]) => [name!, Number(value)]));
}
