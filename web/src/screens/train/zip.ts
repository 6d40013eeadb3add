// The files of a zip archive (APPNOTE 6.3: the directory at its end, entries stored or deflated; no zip64, no secrets).
import { train as words } from "../../text/en";
import type { Picked } from "./drop";
import { inflated } from "./inflate";

const END = { mark: 0x06054b50, bytes: 22, commentMax: 0xffff };
const ENTRY = { mark: 0x02014b50, bytes: 46 };
const LOCAL = { mark: 0x04034b50, bytes: 30 };
const STORED = 0, DEFLATED = 8;
const FILES_MAX = 30_000;

interface Entry {
  path: string;
  isSecret: boolean;
  method: number;
  packedBytes: number;
  bytes: number;
  at: number; // of its local header
}

const viewOf = async (part: Blob) => new DataView(await part.arrayBuffer());
const broken = () => new Error(words.code.brokenZip);

function entriesOf(view: DataView, count: number): Entry[] {
  const found: Entry[] = [];
  for (let at = 0; found.length < count; ) {
    if (at + ENTRY.bytes > view.byteLength || view.getUint32(at, true) !== ENTRY.mark) throw broken();
    const nameBytes = view.getUint16(at + 28, true);
    const next = at + ENTRY.bytes + nameBytes + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (next > view.byteLength) throw broken();
    found.push({
      path: new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at + ENTRY.bytes, nameBytes)),
      isSecret: (view.getUint16(at + 8, true) & 1) !== 0,
      method: view.getUint16(at + 10, true),
      packedBytes: view.getUint32(at + 20, true),
      bytes: view.getUint32(at + 24, true),
      at: view.getUint32(at + 42, true),
    });
    at = next;
  }
  return found;
}

async function directoryOf(archive: Blob): Promise<Entry[]> {
  const from = Math.max(0, archive.size - END.bytes - END.commentMax);
  const tail = await viewOf(archive.slice(from));
  for (let at = tail.byteLength - END.bytes; at >= 0; at--) {
    if (tail.getUint32(at, true) !== END.mark) continue;
    const count = tail.getUint16(at + 10, true);
    const bytes = tail.getUint32(at + 12, true), start = tail.getUint32(at + 16, true);
    if (start + bytes > from + at || count > FILES_MAX) throw broken();
    return entriesOf(await viewOf(archive.slice(start, start + bytes)), count);
  }
  throw broken();
}

async function fileOf(archive: Blob, { path, isSecret, method, packedBytes, bytes, at }: Entry, lastModified: number): Promise<Picked> {
  const local = await viewOf(archive.slice(at, at + LOCAL.bytes));
  if (local.byteLength < LOCAL.bytes || local.getUint32(0, true) !== LOCAL.mark) throw broken();
  if (isSecret || (method !== STORED && method !== DEFLATED)) throw new Error(words.code.oddZip(path.slice(0, 60)));
  const from = at + LOCAL.bytes + local.getUint16(26, true) + local.getUint16(28, true);
  const packed = archive.slice(from, from + packedBytes);
  const whole = method === STORED ? packed : await inflated(packed, "deflate-raw", bytes).catch(() => null);
  if (whole?.size !== bytes) throw broken();
  return { path, file: new File([whole], path, { lastModified }) };
}

const isOutside = (path: string) => path.startsWith("/") || path.includes("\\") || path.split("/").includes("..");

export async function unzipped(archive: File, bytesMax: number): Promise<Picked[]> {
  const entries = (await directoryOf(archive)).filter(({ path }) => !path.endsWith("/") && !path.startsWith("__MACOSX/"));
  const odd = entries.find(({ path }) => isOutside(path));
  if (odd) throw new Error(words.code.oddZip(odd.path.slice(0, 60)));
  if (entries.reduce((sum, { bytes }) => sum + bytes, 0) > bytesMax) throw new Error(words.code.large);
  const picked: Picked[] = [];
  for (const entry of entries) picked.push(await fileOf(archive, entry, archive.lastModified));
  return picked;
}
