// What runs on the machine now. How its training goes is the borrower's business.
import { post } from "../../api/client";
import { marketNow, now } from "../../core/clock";
import { bytes, cores, creditsShort, duration, number } from "../../core/format";
import { useResource } from "../../core/resource";
import { unit, type Machine } from "../../core/store";
import { common, lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Card, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { tell } from "../../ui/toast";
import { leasesOf, machineOf, type Lease } from "./data";

async function end(lease: Lease): Promise<void> {
  if (!(await ask({ title: words.endTitle, body: words.endBody, action: words.end, isDanger: true }))) return;
  await post("/v1/leases/{id}/end", { path: { id: lease.id } });
  await leasesOf(lease.machine).refresh();
}

async function takeBack(machine: Machine): Promise<void> {
  if (!(await ask({ title: words.takeBackTitle(machine.name), body: words.takeBackBody, action: words.takeBack, isDanger: true }))) return;
  await post("/v1/machines/{id}/reclaim", { path: { id: machine.id } });
  tell(words.takenBack(machine.name));
  await Promise.all([leasesOf(machine.id).refresh(), machineOf(machine.id).refresh()]);
}

const used = (lease: Lease) => (lease.billed_ms > 0 ? number(lease.cpu_ms / lease.billed_ms, 2) : "–");

const columns = (): readonly Column<Lease>[] => [
  { name: "job", head: words.leases.job, isRowHead: true, cell: (lease) => words.leases.jobOf(lease.job, words.roles[lease.role]) },
  {
    name: "state", head: words.leases.state,
    cell: (lease) => <State state={lease.unreachable ? "unreachable" : lease.state} label={common.states[lease.unreachable ? "unreachable" : lease.state]} />,
  },
  { name: "takes", head: words.leases.takes, cell: (lease) => `${cores(lease.cores_milli)}, ${bytes(lease.ram_bytes)}` },
  { name: "cpu", head: words.leases.cpu, isRight: true, cell: used },
  { name: "memory", head: words.leases.memory, isRight: true, cell: (lease) => bytes(lease.memory_peak_bytes) },
  { name: "since", head: words.leases.since, isRight: true, cell: (lease) => duration(Math.max(0, Math.max(now.value, marketNow()) - lease.started_ms)) },
  { name: "earned", head: unit.value, isRight: true, cell: (lease) => creditsShort(lease.earned_microcredits) },
  { name: "end", head: words.leases.end, isRight: true, cell: (lease) => <Button kind="link" onClick={() => end(lease)}>{words.end}</Button> },
];

export function Leases({ machine }: { machine: Machine }) {
  const { data, problem } = useResource(leasesOf(machine.id));
  const rows = data?.items ?? [];
  return (
    <Card title={words.runs} class="leases"
      action={rows.length > 0 && <Button kind="danger" onClick={() => takeBack(machine)}>{words.takeBack}</Button>}>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton lines={2} />}
      {data && rows.length === 0 && <p class="faint">{machine.availability === "free" ? words.runsNothing : words.runsNothingNow}</p>}
      {rows.length > 0 && <Table label={words.runs} columns={columns()} rows={rows} rowKey={(lease) => lease.id} isStacked />}
    </Card>
  );
}
