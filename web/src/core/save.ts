// Saves what the market has as a file of this browser, part by part where it comes in parts.
import { problemOf } from "../api/problem";

export function save(parts: BlobPart[], type: string, name: string): void {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

// A CSV answer has at most 500 rows and says in its Link where the next ones are; the columns' names come once.
export async function saveCsv(address: string, name: string): Promise<void> {
  const parts: string[] = [];
  for (let next: string | undefined = address; next; ) {
    const response: Response = await fetch(next, { credentials: "same-origin", cache: "no-store" });
    const text = await response.text();
    if (!response.ok) throw problemOf(response, text);
    parts.push(parts.length ? text.slice(text.indexOf("\n") + 1) : text);
    next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
  }
  save(parts, "text/csv", name);
}
