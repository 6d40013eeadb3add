// The market reads what was sent to it, or what lies at an address: asked for, and followed until it is ready.
import { get, post, remove, type Schemas } from "../../api/client";
import { Problem } from "../../api/problem";
import { reaching, type OnProgress } from "./chunks";

export type ImportWish = Schemas["NewImport"];
export type Import = Schemas["Import"];

const WAIT_MIN_MS = 200;
const WAIT_MAX_MS = 2000;

function pause(wait_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, wait_ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

async function follow(id: number, signal: AbortSignal, onProgress: OnProgress): Promise<Import> {
  for (let wait_ms = WAIT_MIN_MS; ; wait_ms = Math.min(WAIT_MAX_MS, wait_ms * 1.5)) {
    const far = { phase: "waiting", done_bytes: 0, all_bytes: 0 } as const;
    const now = await reaching(() => get("/v1/imports/{id}", { path: { id }, signal }), signal, () => onProgress({ ...far, isAway: true }));
    if (now.state === "ready") return now;
    if (now.state === "failed") throw new Error(now.problem ?? "");
    onProgress({ phase: now.state, done_bytes: now.done_bytes, all_bytes: now.total_bytes, isAway: false });
    await pause(wait_ms, signal);
    signal.throwIfAborted();
  }
}

interface Reading {
  wish: ImportWish;
  known: number | null; // an import that was asked for before
  onId: (id: number) => void;
}

// A market that was started anew has forgotten its imports: then it is asked again.
export async function importData({ wish, known, onId }: Reading, signal: AbortSignal, onProgress: OnProgress): Promise<Import> {
  const away = () => onProgress({ phase: "waiting", done_bytes: 0, all_bytes: 0, isAway: true });
  for (let id = known; ; id = null) {
    if (id === null) {
      const made = await reaching(() => post("/v1/imports", { body: wish, signal }), signal, away);
      onId((id = made.id));
    }
    try {
      return await follow(id, signal, onProgress);
    } catch (failure) {
      // Nobody waits for it any more: it need not be read to its end, and forgetting to say so does no harm.
      if (signal.aborted) void remove("/v1/imports/{id}", { path: { id } }).catch(() => undefined);
      if (!(failure instanceof Problem && failure.status === 404)) throw failure;
    }
  }
}
