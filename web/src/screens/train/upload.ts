// What is sent as what: code as an archive, data as they are.
import { train as words } from "../../text/en";
import { store, type OnProgress } from "./chunks";
import type { Input, Raw, Sent } from "./draft";
import type { Picked } from "./drop";
import { tarOf } from "./tar";
import { unzipped } from "./zip";

const CODE_BYTES_MAX = 2 ** 30;
const FILES_KEPT = 500;

// The same files give the same: what was sent of them is known by it.
export const identity = (picked: Picked[]) => JSON.stringify(picked.map(({ path, file }) => [path, file.size, file.lastModified]));

const isArchive = (name: string) => /\.(tar|tgz|tar\.gz|tar\.zst)$/i.test(name);
const isZip = (name: string) => /\.zip$/i.test(name);

// A tar archive goes as it is; the files of a zip file, and other files, in one that is made here.
export async function sendCode(dropped: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<Sent> {
  const [first] = dropped;
  const isAlone = dropped.length === 1;
  if (!isAlone && dropped.some(({ path }) => isArchive(path) || isZip(path))) throw new Error(words.code.oneArchive);
  const picked = isAlone && isZip(first!.path) ? await unzipped(first!.file, CODE_BYTES_MAX) : dropped;
  const isTar = isAlone && isArchive(first!.path);
  if (picked.length === 0) throw new Error(words.code.empty);
  const bytes = isTar ? first!.file : tarOf(picked);
  if (bytes.size > CODE_BYTES_MAX) throw new Error(words.code.large);
  if (bytes.size === 0) throw new Error(words.code.empty);
  const { manifest, records } = await store({ mediaType: "application/x-tar", bytes, of: identity(dropped) }, signal, onProgress);
  const paths = picked.map(({ path }) => path);
  const inputs: Input[] = [{ name: "files", split: "files", manifest, records }];
  const files = isTar || paths.length > FILES_KEPT ? {} : { files: paths };
  const name = dropped.map(({ path }) => path).join(", ").slice(0, 200);
  return { name, by: "", inputs, train: {}, rows: paths.length, bytes: bytes.size, ...files };
}

const typeOf = (name: string) =>
  isArchive(name) ? "application/x-tar" : isZip(name) ? "application/zip" : "application/octet-stream";

export interface Packed {
  name: string;
  mediaType: string;
  bytes: Blob;
  of: string;
}

// One file or archive goes as it is; several, and folders, in an archive that is made here.
export function pack(picked: Picked[], folder: string): Packed {
  const [first] = picked;
  const isOne = picked.length === 1 && !first!.path.includes("/");
  const name = isOne ? first!.path : `${folder || words.data.folder}.tar`;
  return { name, mediaType: typeOf(name), bytes: isOne ? first!.file : tarOf(picked), of: identity(picked) };
}

export async function sendPacked(packed: Packed, signal: AbortSignal, onProgress: OnProgress): Promise<Raw> {
  if (packed.bytes.size === 0) throw new Error(words.code.empty);
  const { manifest } = await store(packed, signal, onProgress);
  return { name: packed.name, manifest, bytes: packed.bytes.size };
}
