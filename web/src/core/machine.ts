// What a machine does now, in one word.
import type { Machine } from "./store";

// Leases go on after an offer has closed.
export function machineState(machine: Machine): string {
  if (machine.availability !== "paused") return machine.availability;
  if (machine.yield === "paused_remotely") return "paused";
  if (machine.yield !== "none" && machine.yield !== "low") return machine.yield;
  if (machine.lease_count > 0) return "busy";
  return machine.offer_state === "closed" ? "closed" : "paused";
}

// By its name, what holds a machine up that its owner needs.
export function heldMachines(machines: readonly Machine[]): Map<string, "frozen" | "paused"> {
  const held = machines.filter((machine) => ["frozen", "paused", "paused_remotely"].includes(machine.yield));
  return new Map(held.map((machine) => [machine.name, machine.yield === "frozen" ? "frozen" : "paused"]));
}
