// Chooses and orders the machines of the market's table.
import { machineState } from "../../core/machine";
import type { Machine } from "../../core/store";

const GIB = 2 ** 30;
export const names = ["name", "state", "cores", "memory", "gpus", "rtt", "reliability", "spare"] as const;
export type Name = (typeof names)[number];
export type Filters = Record<Name, string>;

export function filtersOf(query: URLSearchParams): Filters {
  return Object.fromEntries(names.map((name) => [name, query.get(name) ?? ""])) as Filters;
}

export const rtt_us = (machine: Machine) => machine.probe.rtt_us ?? 0;

// A filter ignores an amount that is not a number.
const least = (asked: string) => Number(asked) || 0;

export function matching(machines: readonly Machine[], filters: Filters, spare: ReadonlySet<number>): readonly Machine[] {
  const name = filters.name.trim().toLowerCase();
  const most_us = least(filters.rtt) * 1000;
  return machines.filter(
    (machine) =>
      (!name || machine.name.includes(name) || machine.account_name.includes(name)) &&
      (!filters.state || machineState(machine) === filters.state) &&
      (!filters.spare || spare.has(machine.id)) &&
      machine.free.cores_milli >= least(filters.cores) * 1000 &&
      machine.free.ram_bytes >= least(filters.memory) * GIB &&
      machine.free.gpus_milli >= least(filters.gpus) * 1000 &&
      machine.reputation.reliability_milli >= least(filters.reliability) * 1000 &&
      (!most_us || (rtt_us(machine) > 0 && rtt_us(machine) <= most_us)),
  );
}

export const asked = (machine: Machine) => machine.offer.minimum?.core_micro ?? 0;

// Sort keys by column. An unmeasured round trip comes last.
export const orders = {
  name: (machine: Machine) => machine.name,
  state: machineState,
  free: (machine: Machine) => machine.free.cores_milli,
  memory: (machine: Machine) => machine.free.ram_bytes,
  gpus: (machine: Machine) => machine.offer.gpus_milli ?? 0,
  speed: (machine: Machine) => machine.probe.speed_weight_milli,
  rtt: (machine: Machine) => rtt_us(machine) || Number.MAX_SAFE_INTEGER,
  price: asked,
  reliability: (machine: Machine) => machine.reputation.reliability_milli,
  lender: (machine: Machine) => machine.account_name,
  earned: (machine: Machine) => machine.earned_microcredits,
};
