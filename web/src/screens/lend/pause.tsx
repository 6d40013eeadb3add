// The owner's word reaches the machine at once; what it then does comes back as its state.
import { post } from "../../api/client";
import { timeShort } from "../../core/format";
import { myMachines, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { tell } from "../../ui/toast";
import { untilTomorrow_ms } from "./clock";
import { machineOf } from "./data";

const HOUR_MS = 3_600_000;

async function reread(machine: Machine): Promise<void> {
  await Promise.all([myMachines.refresh(), machineOf(machine.id).refresh()]);
}

async function pause(machine: Machine, for_ms?: number): Promise<void> {
  await post("/v1/machines/{id}/pause", { path: { id: machine.id }, body: for_ms ? { for_ms } : {} });
  tell(for_ms ? words.pausedUntil(machine.name, timeShort(Date.now() + for_ms)) : words.paused(machine.name));
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
        {words.saidThere(machine.yield)} <code>{words.resumeCommand}</code>
      </span>
    );
  if (machine.yield === "paused_remotely")
    return <Button icon="play" onClick={() => resume(machine)}>{words.resume}</Button>;
  const now = <Button icon="pause" onClick={() => pause(machine)}>{words.pause}</Button>;
  if (!isWhole) return now;
  return (
    <div class="row" role="group" aria-label={words.pauseGroup}>
      {now}
      <Button onClick={() => pause(machine, HOUR_MS)}>{words.pauseHour}</Button>
      <Button onClick={() => pause(machine, untilTomorrow_ms(Date.now()))}>{words.pauseTomorrow}</Button>
    </div>
  );
}
