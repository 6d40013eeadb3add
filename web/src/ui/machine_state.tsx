// A machine's state as a badge, with when its offer opens or what comes after its leases.
import { now } from "../core/clock";
import { timeSoon } from "../core/format";
import { machineState } from "../core/machine";
import type { Machine } from "../core/store";
import { common, market } from "../text/en";
import { State } from "./parts";

export function MachineState({ machine }: { machine: Machine }) {
  const name = machineState(machine);
  const isShut = machine.state === "online" && machine.offer_state !== "open";
  const after = isShut && name === "busy" ? market.then(common.states[machine.offer_state === "paused" ? "paused" : "closed"]!) : "";
  // A pause by its owner's word, or an offer that opens by itself.
  const until_ms = machine.paused_until_ms || (isShut ? machine.offer_state_until_ms : 0);
  const until = until_ms > 0 && machine.state === "online" ? market.until(timeSoon(until_ms, now.value)) : "";
  return (
    <>
      <State state={name} label={common.states[name]} />
      {(after || until) && <span class="faint until"> {[after, until].filter(Boolean).join(" ")}</span>}
    </>
  );
}
