// A list as CSV, all of its pages one after the other.
import { problemOf, Unreachable } from "./problem";

// The next page's address is in the Link header; the columns' names stand in the first page alone.
export async function readCsv(first: string): Promise<Blob> {
  const parts: string[] = [];
  let address: string | undefined = first;
  while (address) {
    const response: Response = await fetch(address, { credentials: "same-origin", cache: "no-store" }).catch(() => {
      throw new Unreachable();
    });
    const text = await response.text();
    if (!response.ok) throw problemOf(response, text);
    parts.push(text);
    address = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
  }
  return new Blob(parts, { type: "text/csv" });
}
