// Files as one tar archive (POSIX ustar), without copying what is in them.
import { train as words } from "../../text/en";
import type { Picked } from "./drop";

const BLOCK = 512;
const NAME_MAX = 100;
const PREFIX_MAX = 155;
const FILES_MAX = 30_000;

const bytesOf = (text: string) => new TextEncoder().encode(text);

// A long path is cut at a slash into a prefix and a name.
function cut(path: string): { name: Uint8Array; prefix: Uint8Array } {
  if (bytesOf(path).length <= NAME_MAX) return { name: bytesOf(path), prefix: bytesOf("") };
  for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1)) {
    const name = bytesOf(path.slice(at + 1)), prefix = bytesOf(path.slice(0, at));
    if (name.length <= NAME_MAX && prefix.length <= PREFIX_MAX) return { name, prefix };
  }
  throw new Error(words.code.longPath(path.slice(0, 60)));
}

interface Entry {
  size: number;
  lastModified: number;
  mode: string;
}

function header(path: string, { size, lastModified, mode }: Entry): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const { name, prefix } = cut(path);
  const put = (at: number, text: string) => block.set(bytesOf(text), at);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  block.set(name, 0);
  put(100, `${mode}\0`);
  put(108, "0000000\0");
  put(116, "0000000\0");
  put(124, `${octal(size, 11)}\0`);
  put(136, `${octal(Math.floor(lastModified / 1000), 11)}\0`);
  put(148, "        "); // the sum counts as blanks
  put(156, "0");
  put(257, "ustar\u000000");
  block.set(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(148, `${octal(sum, 6)}\0 `);
  return block;
}

// With `isPlain` equal files give equal archives, whenever they were saved.
export function tarOf(picked: Picked[], isPlain = false): Blob {
  if (picked.length > FILES_MAX) throw new Error(words.code.manyFiles(FILES_MAX));
  // Scripts are started by their name, too.
  const entryOf = ({ size, lastModified }: File): Entry =>
    (isPlain ? { size, lastModified: 0, mode: "0000644" } : { size, lastModified, mode: "0000755" });
  const pieces = picked.flatMap(({ path, file }): BlobPart[] =>
    [header(path, entryOf(file)), file, new Uint8Array((BLOCK - (file.size % BLOCK)) % BLOCK)]);
  return new Blob([...pieces, new Uint8Array(2 * BLOCK)]);
}
