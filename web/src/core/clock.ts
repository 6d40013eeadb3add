// The market's clock, as its events show it: this computer's may be wrong. The least delayed of them says most.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hear } from "./live";

let ahead_ms = -Infinity; // of this computer's clock; none heard yet: taken for right

function heardAt(market_ms: number[]): void {
  ahead_ms = Math.max(ahead_ms, ...market_ms.map((at_ms) => at_ms - Date.now()));
}

hear("state", (events) => heardAt(events.map((event) => event.at_ms)));
hear("heartbeat", (events) => heardAt(events.map((event) => event.heard_ms)));

export const marketNow = () => Date.now() + (ahead_ms > -Infinity ? ahead_ms : 0);

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
