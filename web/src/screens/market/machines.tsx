// The table of all machines; of ten thousand only those in sight are drawn.
import { useMemo } from "preact/hooks";
import { bytes, credits, number } from "../../core/format";
import { machineState } from "../../core/machine";
import { link } from "../../core/router";
import { unit, type Machine } from "../../core/store";
import { common, market as words } from "../../text/en";
import { MachineState } from "../../ui/machine_state";
import { Card, Empty } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { FilterRow, filtersOf, matching } from "./filters";

const isServerOnly = (machine: Machine) => machine.offer.roles.length === 1 && machine.offer.roles[0] === "server";
const rtt = (machine: Machine) => machine.probe.rtt_us ?? 0;
// Not measured comes last, not first.
const rttOrder = (machine: Machine) => rtt(machine) || Number.MAX_SAFE_INTEGER;
const asked = (machine: Machine) => machine.offer.minimum?.core_micro ?? 0;

const columns = (): readonly Column<Machine>[] => [
  {
    name: "name", head: words.columns.name, isRowHead: true, sort: (machine) => machine.name,
    cell: (machine) => (
      <span title={machine.probe.cpu_model}>
        {machine.is_mine ? <a href={link("lend", machine.id)}>{machine.name}</a> : machine.name}
        {isServerOnly(machine) && <span class="faint"> · {words.server}</span>}
      </span>
    ),
  },
  { name: "state", head: words.columns.state, sort: machineState, cell: (machine) => <MachineState machine={machine} /> },
  {
    name: "free", head: words.columns.free, sort: (machine) => machine.free.cores_milli,
    cell: (machine) => (
      <>
        {number(machine.free.cores_milli / 1000, 1)} <span class="faint">{words.of(number(machine.offer.cores_milli / 1000, 1))}</span>
      </>
    ),
  },
  {
    name: "memory", head: words.columns.memory, sort: (machine) => machine.free.ram_bytes,
    cell: (machine) => (
      <>
        {bytes(machine.free.ram_bytes)} <span class="faint">{words.of(bytes(machine.offer.ram_bytes))}</span>
      </>
    ),
  },
  {
    name: "gpus", head: words.columns.gpus, isRight: true, sort: (machine) => machine.offer.gpus_milli ?? 0,
    cell: (machine) => (machine.offer.gpus_milli ? <span title={machine.probe.gpu_model}>{number(machine.offer.gpus_milli / 1000)}</span> : "–"),
  },
  {
    name: "speed", head: words.columns.speed, isRight: true, sort: (machine) => machine.probe.speed_weight_milli,
    cell: (machine) => `× ${number(machine.probe.speed_weight_milli / 1000, 2)}`,
  },
  {
    name: "rtt", head: words.columns.rtt, isRight: true, sort: rttOrder,
    cell: (machine) => (rtt(machine) ? words.ms(number(rtt(machine) / 1000, rtt(machine) < 10_000 ? 2 : 0)) : "–"),
  },
  {
    name: "price", head: words.columns.price, isRight: true, sort: asked,
    cell: (machine) => (asked(machine) ? credits(asked(machine)) : words.marketPrice),
  },
  {
    name: "reliability", head: words.columns.reliability, isRight: true,
    sort: (machine) => machine.reputation.reliability_milli,
    cell: (machine) => number(machine.reputation.reliability_milli / 1000, 2),
  },
  {
    name: "lender", head: words.columns.lender, sort: (machine) => machine.account_name,
    cell: (machine) => (machine.is_mine ? common.you : machine.account_name),
  },
  {
    name: "earned", head: words.columns.earned(unit.value), isRight: true, sort: (machine) => machine.earned_microcredits,
    cell: (machine) => credits(machine.earned_microcredits),
  },
];

export function Machines({ machines, query }: { machines: readonly Machine[]; query: URLSearchParams }) {
  const filters = filtersOf(query);
  const shown = useMemo(() => matching(machines, filters), [machines, JSON.stringify(filters)]);
  const head = useMemo(columns, [unit.value]);
  return (
    <Card title={words.machines} class="machines" action={<span class="faint" role="status">{words.count(shown.length, machines.length)}</span>}>
      {machines.length === 0 && <Empty icon="market" title={words.none}>{words.noneHint}</Empty>}
      {machines.length > 0 && <FilterRow filters={filters} />}
      {machines.length > 0 && shown.length === 0 && <Empty icon="search" title={words.noneMatches} />}
      {shown.length > 0 && <Table label={words.machines} columns={head} rows={shown} rowKey={(machine) => machine.id} />}
    </Card>
  );
}
