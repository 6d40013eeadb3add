// The owner's word reaches the machine at once; what it then does comes back as its state, with when a pause ends.
import { post } from "../../api/client";
import { marketNow, now } from "../../core/clock";
import { timeSoon } from "../../core/format";
import { myMachines, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Note } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { tomorrow_ms } from "./clock";
import { machineOf } from "./data";

const HOUR_MS = 3_600_000;

async function reread(machine: Machine): Promise<void> {
  await Promise.all([myMachines.refresh(), machineOf(machine.id).refresh()]);
}

async function pause(machine: Machine, until: { for_ms: number } | { until_ms: number } | undefined): Promise<void> {
  await post("/v1/machines/{id}/pause", { path: { id: machine.id }, body: until ?? {} });
  const end_ms = until && ("for_ms" in until ? marketNow() + until.for_ms : until.until_ms);
  tell(end_ms ? words.pausedUntil(machine.name, timeSoon(end_ms, marketNow())) : words.paused(machine.name));
  await reread(machine);
}

async function resume(machine: Machine): Promise<void> {
  await post("/v1/machines/{id}/resume", { path: { id: machine.id } });
  await reread(machine);
}

export function Pause({ machine, isWhole = false }: { machine: Machine; isWhole?: boolean }) {
  if (machine.state !== "online") return null;
  // What was said at the machine ends there: nobody who has this page, or the market, undoes it.
  if (machine.yield === "paused" || machine.yield === "draining")
    return (
      <span class="faint">
        {words.resumeThere} <code>{words.resumeCommand}</code>
      </span>
    );
  if (machine.yield === "paused_remotely")
    return <Button icon="play" onClick={() => resume(machine)}>{words.resume}</Button>;
  const atOnce = <Button icon="pause" onClick={() => pause(machine, undefined)}>{words.pause}</Button>;
  if (!isWhole) return atOnce;
  return (
    <div class="row" role="group" aria-label={words.pauseGroup}>
      {atOnce}
      <Button onClick={() => pause(machine, { for_ms: HOUR_MS })}>{words.pauseHour}</Button>
      <Button onClick={() => pause(machine, { until_ms: tomorrow_ms(marketNow()) })}>{words.pauseTomorrow}</Button>
    </div>
  );
}

// Until when, and by whose word.
export function PauseNote({ machine }: { machine: Machine }) {
  const by = words.pausedBy[machine.yield];
  if (machine.state !== "online" || !by) return null;
  const until = machine.paused_until_ms ? words.untilThen(timeSoon(machine.paused_until_ms, now.value)) : "";
  return <Note>{by(until)}</Note>;
}
