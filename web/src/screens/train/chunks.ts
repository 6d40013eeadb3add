// Sends bytes to the market's store, a chunk after the other: what is there already is not sent again, be it that the
// connection was lost, the market restarted or the page was loaded again.
import { post, postPlain } from "../../api/client";
import { Unreachable } from "../../api/problem";
import { PREFIX } from "../../core/form";
import { connection } from "../../core/live";

const CHUNK_BYTES = 4 << 20;
const TYPE = "application/octet-stream";
const KEPT = `${PREFIX}sent-chunks`; // forgotten with what was typed

export interface Progress {
  phase: "sending" | "waiting" | "fetching" | "reading";
  done_bytes: number;
  all_bytes: number;
  isAway: boolean; // the market cannot be reached: it goes on when it is back
}
export type OnProgress = (progress: Progress) => void;

// Of the file that was sent last: the names of its chunks in their order, as far as they are known.
interface Kept {
  of: string;
  hashes: string[];
}

function keptOf(of: string): string[] {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Kept | null;
    return kept?.of === of ? kept.hashes : [];
  } catch {
    return []; // written by another version of the page
  }
}

const keep = (kept: Kept) => sessionStorage.setItem(KEPT, JSON.stringify(kept));

// Until the market is heard again, or nobody waits any more.
function back(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const finish = () => {
      signal.removeEventListener("abort", finish);
      queueMicrotask(() => stop()); // it may be heard at once, before there is something to stop
      done();
    };
    signal.addEventListener("abort", finish);
    const stop = connection.subscribe((now) => {
      if (now === "live") finish();
    });
  });
}

// Tries until the market answers; the client has tried for some seconds each time.
export async function reaching<Value>(act: () => Promise<Value>, signal: AbortSignal, onAway: () => void): Promise<Value> {
  for (;;) {
    try {
      return await act();
    } catch (failure) {
      if (!(failure instanceof Unreachable)) throw failure;
      onAway();
      await back(signal);
      signal.throwIfAborted();
    }
  }
}

const nameOf = async (body: Blob, signal: AbortSignal) => (await postPlain("/v1/chunks", { body, type: TYPE }, signal)).hash;
const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export interface Stored {
  mediaType: string;
  headerBytes?: number;
  recordBytes?: number;
  bytes: Blob;
  of?: string; // the same for the same bytes: what was sent of them is known by it
}

// Returns the name of the manifest and how many records it has.
export async function store(file: Stored, signal: AbortSignal, onProgress: OnProgress): Promise<{ manifest: string; records: number }> {
  const { bytes, headerBytes = 0, recordBytes = 1, of } = file;
  const all_bytes = bytes.size;
  let done_bytes = 0;
  const tell = (isAway: boolean) => onProgress({ phase: "sending", done_bytes, all_bytes, isAway });
  const ask = <Value,>(act: () => Promise<Value>) => reaching(act, signal, () => tell(true));
  const hashes = of === undefined ? [] : keptOf(of);
  const missing = new Set(hashes.length ? (await ask(() => post("/v1/chunks/missing", { body: { hashes }, signal }))).hashes : []);
  const chunks: { hash: string; size: number }[] = [];
  for (let from = 0; from < all_bytes; from += CHUNK_BYTES) {
    const chunk = bytes.slice(from, from + CHUNK_BYTES);
    const known = hashes[chunks.length];
    const hash = known && !missing.has(known) ? known : await ask(() => nameOf(chunk, signal));
    hashes[chunks.length] = hash;
    if (of !== undefined) keep({ of, hashes });
    chunks.push({ hash, size: chunk.size });
    done_bytes += chunk.size;
    tell(false);
  }
  const records = (all_bytes - headerBytes) / recordBytes;
  // In this order and without spaces: the market takes no other form.
  const manifest = JSON.stringify({
    media_type: file.mediaType, size: all_bytes, header_bytes: headerBytes, record_bytes: recordBytes, record_count: records,
    header: hex(new Uint8Array(await bytes.slice(0, headerBytes).arrayBuffer())), chunks,
  });
  return { manifest: await ask(() => nameOf(new Blob([manifest]), signal)), records };
}
