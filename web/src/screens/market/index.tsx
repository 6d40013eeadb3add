// The machines of the market.
import { bytes, cores, credits, number } from "../../core/format";
import { machineState } from "../../core/machine";
import { useResource } from "../../core/resource";
import { machines, type Machine } from "../../core/store";
import { common, market as words } from "../../text/en";
import { MachineState } from "../../ui/machine_state";
import { Card, Empty, Head, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";

const isServerOnly = (machine: Machine) => machine.offer.roles.length === 1 && machine.offer.roles[0] === "server";
const rtt = (machine: Machine) => machine.probe.rtt_us ?? 0;

const columns: readonly Column<Machine>[] = [
  {
    name: "name", head: words.columns.name, isRowHead: true, sort: (machine) => machine.name,
    cell: (machine) => (
      <span title={machine.probe.cpu_model}>
        {machine.name}
        {isServerOnly(machine) && <span class="faint"> · {words.server}</span>}
      </span>
    ),
  },
  { name: "state", head: words.columns.state, sort: machineState, cell: (machine) => <MachineState machine={machine} /> },
  {
    name: "free", head: words.columns.free, sort: (machine) => machine.free.cores_milli,
    cell: (machine) => (
      <>
        {cores(machine.free.cores_milli)} <span class="faint">{words.of(cores(machine.offer.cores_milli))}</span>
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
    name: "speed", head: words.columns.speed, isRight: true, sort: (machine) => machine.probe.speed_weight_milli,
    cell: (machine) => `× ${number(machine.probe.speed_weight_milli / 1000, 2)}`,
  },
  {
    name: "rtt", head: words.columns.rtt, isRight: true, sort: rtt,
    cell: (machine) => (rtt(machine) ? words.ms(number(rtt(machine) / 1000, 1)) : "–"),
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
    name: "earned", head: words.columns.earned, isRight: true, sort: (machine) => machine.earned_microcredits,
    cell: (machine) => credits(machine.earned_microcredits),
  },
];

export default function Market() {
  const { data, problem } = useResource(machines);
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      <Card title={words.machines} class="machines">
        {!data && !problem && <Skeleton lines={4} />}
        {data?.length === 0 && <Empty icon="market" title={words.none}>{words.noneHint}</Empty>}
        {data && data.length > 0 && (
          <Table label={words.machines} columns={columns} rows={data} rowKey={(machine) => machine.id} />
        )}
      </Card>
    </>
  );
}
