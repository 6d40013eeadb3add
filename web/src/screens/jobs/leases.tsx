// Who works for the job, what they earn, and how each lease ended.
import { post, type Schemas } from "../../api/client";
import { bytes, cores, credits, duration } from "../../core/format";
import { jobOf, unit } from "../../core/store";
import { jobs as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Card, State } from "../../ui/parts";
import { isLong, Table, type Column } from "../../ui/table";
import { tell } from "../../ui/toast";
import { byRole, roleName, whyEnded } from "./names";

type Detail = Schemas["JobDetail"];
type Lease = Schemas["Lease"];

function LeaseState({ lease }: { lease: Lease }) {
  const isEnded = lease.state === "ended";
  const held = lease.yield === "paused_remotely" ? "paused" : lease.yield;
  const note = [
    isEnded ? whyEnded(lease) : lease.reason,
    !isEnded && lease.unreachable && words.leases.unreachable,
    !isEnded && words.heldBy[held],
  ].filter(Boolean).join(", ");
  return (
    <>
      <State state={isEnded ? lease.outcome : lease.state} label={isEnded ? words.leases.outcomes[lease.outcome] : words.leases.states[lease.state]} />
      {note && <small class="faint reason">{note}</small>}
    </>
  );
}

function Release({ lease }: { lease: Lease }) {
  if (lease.state === "ended" || lease.role !== "worker") return null;
  const release = async () => {
    const isSure = await ask({
      title: words.leases.releaseAsk(lease.machine_name), body: words.leases.releaseBody, action: words.leases.release, isDanger: true,
    });
    if (!isSure) return;
    await post("/v1/leases/{id}/release", { path: { id: lease.id } });
    tell(words.leases.released(lease.machine_name));
    await jobOf(lease.job).refresh();
  };
  return <Button kind="link" onClick={release}>{words.leases.release}</Button>;
}

const columns: readonly Column<Lease>[] = [
  { name: "machine", head: words.leases.machine, isRowHead: true, sort: (lease) => lease.machine_name, cell: (lease) => lease.machine_name },
  { name: "role", head: words.leases.role, sort: (lease) => roleName(lease), cell: roleName },
  { name: "state", head: words.leases.state, sort: (lease) => lease.outcome, cell: (lease) => <LeaseState lease={lease} /> },
  { name: "size", head: words.leases.size, isWideOnly: true, sort: (lease) => lease.cores_milli,
    cell: (lease) => `${cores(lease.cores_milli)}, ${bytes(lease.ram_bytes)}` },
  { name: "cpu", head: words.leases.cpu, isRight: true, isWideOnly: true, sort: (lease) => lease.cpu_ms, cell: (lease) => duration(lease.cpu_ms) },
  { name: "time", head: words.leases.time, isRight: true, sort: (lease) => lease.billed_ms, cell: (lease) => duration(lease.billed_ms) },
  { name: "paid", head: words.leases.paid, isRight: true, isWideOnly: true, sort: (lease) => lease.posted_microcredits,
    cell: (lease) => credits(lease.posted_microcredits) },
  { name: "earned", head: words.leases.earned, isRight: true, sort: (lease) => lease.earned_microcredits,
    cell: (lease) => credits(lease.earned_microcredits) },
];
const dropped = ["role", "time", "earned"]; // on a phone; the bill has them
const columnsLong = columns.map((column) => ({ ...column, isWideOnly: column.isWideOnly || dropped.includes(column.name) }));
const acting: Column<Lease> = { name: "act", head: words.leases.act, isRight: true, cell: (lease) => <Release lease={lease} /> };

export function Leases({ job }: { job: Detail }) {
  const isOpen = job.leases.some((lease) => lease.state !== "ended" && lease.role === "worker");
  const shown = isLong(job.leases) ? columnsLong : columns;
  return (
    <Card title={words.leases.title} action={<span class="faint">{words.leases.sum(credits(job.spent_microcredits), unit.value)}</span>}>
      {job.leases.length === 0 ? (
        <p class="faint">{words.leases.none}</p>
      ) : (
        <Table label={words.leases.title} columns={isOpen ? [...shown, acting] : shown} rows={[...job.leases].sort(byRole)}
          rowKey={(lease) => lease.id} isStacked />
      )}
    </Card>
  );
}
