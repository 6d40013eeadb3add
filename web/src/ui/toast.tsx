// Short words at the edge: what was done goes by itself, what went wrong stays until it is closed.
import { signal } from "@preact/signals";
import { common } from "../text/en";
import { Icon } from "./icon";

interface Toast {
  id: number;
  words: string;
  isProblem: boolean;
}

const SHOWN_MS = 6000;
const SHOWN_MAX = 4;
const toasts = signal<Toast[]>([]);
let last = 0;

const drop = (id: number) => (toasts.value = toasts.value.filter((toast) => toast.id !== id));

function add(words: string, isProblem: boolean): number {
  const id = ++last;
  const others = toasts.value.filter((toast) => toast.words !== words);
  toasts.value = [...others, { id, words, isProblem }].slice(-SHOWN_MAX);
  return id;
}

export function tell(words: string): void {
  const id = add(words, false);
  setTimeout(() => drop(id), SHOWN_MS);
}

export function complain(failure: Error): void {
  add(failure.message, true);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast${toast.isProblem ? " bad" : ""}`}>
          <Icon name={toast.isProblem ? "warn" : "check"} size={18} />
          <span>{toast.words}</span>
          <button type="button" class="button link round" aria-label={common.close} onClick={() => drop(toast.id)}>
            <Icon name="close" size={16} />
          </button>
        </div>
      ))}
    </div>
  );
}
