// The machines this account lends: adding one, what each does and earns, and all of one under #/lend/ID.
import { bytes, cores, credits, number, thousandths } from "../../core/format";
import { machineState } from "../../core/machine";
import { usePauses } from "../../core/pauses";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { myMachines, unit, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { MachineState } from "../../ui/machine_state";
import { Card, Empty, Head, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { Add } from "./add";
import { MachineScreen } from "./machine";
import { Pause } from "./pause";
import "./style.css";

const columns = (): readonly Column<Machine>[] => [
  {
    name: "name", head: words.columns.name, isRowHead: true, sort: (machine) => machine.name,
    cell: (machine) => <a href={link("lend", machine.id)}>{machine.name}</a>,
  },
  { name: "state", head: words.columns.state, sort: machineState, cell: (machine) => <MachineState machine={machine} /> },
  {
    name: "leased", head: words.columns.leased, sort: (machine) => machine.leased_cores_milli,
    cell: (machine) => words.of(thousandths(machine.leased_cores_milli), cores(machine.offer.cores_milli)),
  },
  { name: "memory", head: words.columns.memory, isWideOnly: true, cell: (machine) => bytes(machine.free.ram_bytes) },
  {
    name: "reliability", head: words.columns.reliability, isRight: true, isWideOnly: true,
    sort: (machine) => machine.reputation.reliability_milli,
    cell: (machine) => number(machine.reputation.reliability_milli / 1000, 2),
  },
  {
    name: "earned", head: words.columns.earned(unit.value), isRight: true, sort: (machine) => machine.earned_microcredits,
    cell: (machine) => credits(machine.earned_microcredits),
  },
  { name: "pause", head: words.columns.pause, isRight: true, cell: (machine) => <Pause machine={machine} /> },
];

function Machines({ isAsked }: { isAsked: boolean }) {
  const { data, problem } = useResource(myMachines);
  usePauses(data);
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      {data ? <Add machines={data} isAsked={isAsked} /> : !problem && <Skeleton />}
      {data && (
        <Card title={words.machines}>
          {data.length === 0 ? (
            <Empty icon="lend" title={words.none}>
              {words.noneHint}
            </Empty>
          ) : (
            <Table label={words.machines} columns={columns()} rows={data} rowKey={(machine) => machine.id} isStacked />
          )}
        </Card>
      )}
    </>
  );
}

export default function Lend({ rest }: { rest: string[] }) {
  const id = Number(rest[0]);
  return Number.isSafeInteger(id) && id > 0 ? <MachineScreen key={id} id={id} /> : <Machines isAsked={rest[0] === "add"} />;
}
