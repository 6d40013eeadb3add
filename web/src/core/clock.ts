// The market's clock, as its answers and events show it: this computer's may be wrong. The least delayed of them says
// most. Between them the browser's own count of milliseconds goes on, which nobody sets.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hear } from "./live";

const AGAIN_MS = 15_000;
const SHOWN_MS = 1000; // a difference that can be seen
const SET_BACK_MS = 60_000; // no answer is so late: the market's clock itself was set

let ahead_ms = -Infinity; // of the browser's count; none heard yet: this computer's clock is taken for right

export const marketNow = () => (ahead_ms > -Infinity ? Math.round(performance.now() + ahead_ms) : Date.now());

// The quarter of a minute, for "3 min ago".
export const now = signal(Date.now());
setInterval(() => (now.value = marketNow()), AGAIN_MS);

export function heardAt(market_ms: number): void {
  const found_ms = market_ms - performance.now();
  if (!Number.isFinite(found_ms) || (found_ms <= ahead_ms && found_ms > ahead_ms - SET_BACK_MS)) return;
  ahead_ms = found_ms;
  if (Math.abs(now.peek() - marketNow()) > AGAIN_MS + SHOWN_MS) now.value = marketNow();
}

hear("state", (events) => events.forEach((event) => heardAt(event.at_ms)));
hear("heartbeat", (events) => events.forEach((event) => heardAt(event.heard_ms)));

const second = signal(0);
let shown = 0;
let timer = 0;

// The market's time now, for what is shown; drawn again each second while `isTicking`.
export function useMarketNow(isTicking: boolean): number {
  useEffect(() => {
    if (!isTicking) return;
    if (shown++ === 0) timer = window.setInterval(() => second.value++, 1000);
    return () => {
      if (--shown === 0) clearInterval(timer);
    };
  }, [isTicking]);
  if (isTicking) void second.value;
  return marketNow();
}
