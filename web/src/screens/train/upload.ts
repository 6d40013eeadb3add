// What is sent as what: code as an archive, data as they are.
import { train as words } from "../../text/en";
import { store, type OnProgress } from "./chunks";
import type { Input, Raw, Sent } from "./draft";
import type { Picked } from "./drop";
import { tarOf } from "./tar";
import { apart, hasRequirements } from "./wheels";
import { unzipped } from "./zip";

const CODE_BYTES_MAX = 2 ** 30;
const FILES_KEPT = 500;

// The same files give the same: what was sent of them is known by it.
export const identity = (picked: Picked[]) => JSON.stringify(picked.map(({ path, file }) => [path, file.size, file.lastModified]));

const isArchive = (name: string) => /\.(tar|tgz|tar\.gz|tar\.zst)$/i.test(name);
const isZip = (name: string) => /\.zip$/i.test(name);

interface Archive {
  split: "files" | "wheels";
  bytes: Blob;
  of: string;
}

async function sendArchive({ split, bytes, of }: Archive, signal: AbortSignal, onProgress: OnProgress): Promise<Input[]> {
  if (bytes.size > CODE_BYTES_MAX) throw new Error(words.code.large);
  if (bytes.size === 0) throw new Error(words.code.empty);
  const { manifest, records } = await store({ mediaType: "application/x-tar", bytes, of }, signal, onProgress);
  return [{ name: split, split, manifest, records }];
}

const namesOf = (picked: Picked[]) => picked.map(({ path }) => path);
const joined = (picked: Picked[]) => namesOf(picked).join(", ").slice(0, 200);

// `dropped`: what a person sees as it, a zip file say; `picked`: what is in it.
async function sendFiles(dropped: Picked[], picked: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<Sent> {
  const [first] = dropped;
  const isTar = dropped.length === 1 && isArchive(first!.path);
  const bytes = isTar ? first!.file : tarOf(picked);
  const inputs = await sendArchive({ split: "files", bytes, of: identity(dropped) }, signal, onProgress);
  const paths = namesOf(picked);
  const files = isTar || paths.length > FILES_KEPT ? {} : { files: paths };
  const needs = !isTar && hasRequirements(picked) ? { hasRequirements: true } : {};
  return { name: joined(dropped), by: "", inputs, train: {}, rows: paths.length, bytes: bytes.size, ...files, ...needs };
}

async function sendWheels(wheels: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<Sent> {
  const bytes = tarOf(wheels, /* isPlain= */ true);
  const inputs = await sendArchive({ split: "wheels", bytes, of: identity(wheels) }, signal, onProgress);
  return { name: joined(wheels), by: "", inputs, train: {}, rows: wheels.length, bytes: bytes.size, files: namesOf(wheels) };
}

// A tar archive goes as it is; the files of a zip file, and other files, in one that is made here. Wheels among them are
// packages: they go in an archive of their own. What was not dropped is not told of.
export async function sendCode(dropped: Picked[], signal: AbortSignal, onProgress: OnProgress): Promise<{ code?: Sent; wheels?: Sent }> {
  const beside = apart(dropped);
  const [first] = beside.code;
  const isAlone = beside.code.length === 1;
  if (!isAlone && beside.code.some(({ path }) => isArchive(path) || isZip(path))) throw new Error(words.code.oneArchive);
  const isUnpacked = isAlone && isZip(first!.path);
  const inside = isUnpacked ? await unzipped(first!.file, CODE_BYTES_MAX) : beside.code;
  const { code, wheels } = apart([...inside, ...beside.wheels]);
  if (code.length + wheels.length === 0) throw new Error(words.code.empty);
  return {
    ...(code.length ? { code: await sendFiles(beside.code, code, signal, onProgress) } : {}),
    ...(wheels.length ? { wheels: await sendWheels(wheels, signal, onProgress) } : {}),
  };
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
