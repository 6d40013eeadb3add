// A pause that only ends later than it did changes no state, and so is no event: the machine's heartbeat alone tells it.
import { useEffect, useRef } from "preact/hooks";
import { hear, mark, type Events } from "./live";
import type { Machine } from "./store";

// Has these read again when one of them, of this account, is paused until another time than is shown.
export function usePauses(machines: readonly Machine[] | undefined): void {
  const known = useRef(machines);
  known.current = machines;
  useEffect(() => hear("heartbeat", (events) => {
    const isNews = (event: Events["heartbeat"]) =>
      known.current?.some((machine) => machine.id === event.machine && machine.paused_until_ms !== event.paused_until_ms);
    if (events.some(isNews)) mark(["machines", "leases"]);
  }), []);
}
