// What lies in a tar archive (POSIX ustar and pax, GNU's long names), as pieces of it: nothing is copied.
import { train as words } from "../../text/en";

const BLOCK = 512;
const FILES_MAX = 30_000;
const WORDS_MAX = 64 << 10; // of a header that says more about the next

export interface Packed {
  path: string;
  isFile: boolean; // neither folder nor link
  isFolder: boolean;
  bytes: Blob;
  whole: Blob; // with its headers, as it stands in the archive
}

interface Header {
  path: string;
  size: number;
  kind: string;
}

const decoder = new TextDecoder();
const textOf = (bytes: Uint8Array) => decoder.decode(bytes.subarray(0, bytes.indexOf(0) < 0 ? bytes.length : bytes.indexOf(0)));
const octal = (bytes: Uint8Array) => parseInt(textOf(bytes).trim() || "0", 8);
const rounded = (size: number) => Math.ceil(size / BLOCK) * BLOCK;
const broken = () => new Error(words.code.brokenTar);

// Null: the block of zeros at the end.
function headerOf(block: Uint8Array): Header | null {
  if (block.length < BLOCK) throw broken();
  if (block.every((byte) => byte === 0)) return null;
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0); // the sum counts as blanks
  const size = octal(block.subarray(124, 136));
  if (octal(block.subarray(148, 156)) !== sum || !(size >= 0)) throw broken();
  const prefix = decoder.decode(block.subarray(257, 263)) === "ustar\0" ? textOf(block.subarray(345, 500)) : "";
  const name = textOf(block.subarray(0, 100));
  return { path: prefix ? `${prefix}/${name}` : name, size, kind: String.fromCharCode(block[156]!) };
}

// "30 path=a/long/name\n": its length, in bytes, counts itself.
function wordsOf(bytes: Uint8Array): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const blank = bytes.indexOf(32, at);
    const length = blank < 0 ? NaN : Number(decoder.decode(bytes.subarray(at, blank)));
    if (!(length > blank - at && at + length <= bytes.length)) throw broken();
    const [name, ...value] = decoder.decode(bytes.subarray(blank + 1, at + length - 1)).split("=");
    found.set(name!, value.join("="));
    at += length;
  }
  return found;
}

// What headers before an entry say about it.
interface Said {
  path?: string;
  size?: number;
}

async function saidBy(kind: string, bytes: Blob): Promise<Said> {
  if (bytes.size > WORDS_MAX) throw broken();
  const read = new Uint8Array(await bytes.arrayBuffer());
  if (kind === "L") return { path: textOf(read) };
  if (kind !== "x") return {};
  const told = wordsOf(read);
  return { ...(told.has("path") ? { path: told.get("path")! } : {}), ...(told.has("size") ? { size: Number(told.get("size")) } : {}) };
}

export async function untarred(archive: Blob): Promise<Packed[]> {
  const found: Packed[] = [];
  let from = 0; // of the entry, with what is said before it
  let said: Said = {};
  for (let at = 0; at < archive.size; ) {
    const header = headerOf(new Uint8Array(await archive.slice(at, at + BLOCK).arrayBuffer()));
    if (!header) return found;
    const { kind } = header;
    const isSaying = "xgLK".includes(kind);
    const size = isSaying ? header.size : (said.size ?? header.size);
    const next = at + BLOCK + rounded(size);
    if (kind === "S" || next > archive.size || found.length >= FILES_MAX) throw broken();
    const bytes = archive.slice(at + BLOCK, at + BLOCK + size);
    if (isSaying) said = { ...said, ...(await saidBy(kind, bytes)) };
    else {
      const path = (said.path ?? header.path).replace(/^\.\//, "");
      found.push({ path, isFile: "07\0".includes(kind), isFolder: kind === "5" || path.endsWith("/"), bytes, whole: archive.slice(from, next) });
      from = next;
      said = {};
    }
    at = next;
  }
  return found;
}

// The entries as an archive again.
export const tarAgain = (packed: Packed[]) => new Blob([...packed.map(({ whole }) => whole), new Uint8Array(2 * BLOCK)]);
