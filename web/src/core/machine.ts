// What a machine does now, in one word.
import type { Schemas } from "../api/client";
import type { Machine } from "./store";

// Leases go on after an offer has closed.
export function machineState(machine: Machine): string {
  if (machine.availability !== "paused") return machine.availability;
  if (machine.yield === "paused_remotely") return "paused";
  if (machine.yield !== "none" && machine.yield !== "low") return machine.yield;
  if (machine.lease_count > 0) return "busy";
  return machine.offer_state === "closed" ? "closed" : "paused";
}

// By its id, what holds a lease up whose machine its owner needs. A lease says it; of others' machines the list only
// says that they pause, for whatever reason.
export function heldLeases(leases: readonly Schemas["Lease"][]): Map<number, "frozen" | "paused"> {
  const held = leases.filter((lease) => ["frozen", "paused", "paused_remotely"].includes(lease.yield));
  return new Map(held.map((lease) => [lease.id, lease.yield === "frozen" ? "frozen" : "paused"]));
}
