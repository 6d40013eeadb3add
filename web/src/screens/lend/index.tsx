// The machines this account lends: adding one, seeing what it does and earns, pausing it.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../../api/client";
import { bytes, cores, credits, number, timeShort } from "../../core/format";
import { machineState } from "../../core/machine";
import { useResource } from "../../core/resource";
import { myMachines, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { MachineState } from "../../ui/machine_state";
import { Card, Empty, Head, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";

interface Made {
  command: string;
  expires_ms: number;
}

// As `souk machines add` prints it.
async function lendCommand(): Promise<Made> {
  const [server, made] = await Promise.all([get("/v1/server"), post("/v1/machines/codes")]);
  const pin = server.url.startsWith("https://") ? ` --fingerprint ${made.fingerprint}` : "";
  return { command: `souk lend --server ${server.url}${pin} --code ${made.code}`, expires_ms: made.expires_ms };
}

// The owner's word reaches the machine at once; what it then does comes back as its state.
function Pause({ machine }: { machine: Machine }) {
  if (machine.state !== "online") return null;
  // What was said at the machine ends there: nobody who has this page, or the market, undoes it.
  if (machine.yield === "paused" || machine.yield === "draining")
    return (
      <span class="faint">
        {words.saidThere(machine.yield)} <code>{words.resumeCommand}</code>
      </span>
    );
  const isHeld = machine.yield === "paused_remotely";
  const say = async () => {
    await post(isHeld ? "/v1/machines/{id}/resume" : "/v1/machines/{id}/pause", { path: { id: machine.id } });
    await myMachines.refresh();
  };
  return (
    <Button icon={isHeld ? "play" : "pause"} onClick={say}>
      {isHeld ? words.resume : words.pause}
    </Button>
  );
}

const columns: readonly Column<Machine>[] = [
  { name: "name", head: words.columns.name, isRowHead: true, sort: (machine) => machine.name, cell: (machine) => machine.name },
  { name: "state", head: words.columns.state, sort: machineState, cell: (machine) => <MachineState machine={machine} /> },
  {
    name: "leased", head: words.columns.leased, sort: (machine) => machine.leased_cores_milli,
    cell: (machine) => words.of(number(machine.leased_cores_milli / 1000, 1), cores(machine.offer.cores_milli)),
  },
  { name: "memory", head: words.columns.memory, isWideOnly: true, cell: (machine) => bytes(machine.free.ram_bytes) },
  {
    name: "reliability", head: words.columns.reliability, isRight: true, isWideOnly: true,
    cell: (machine) => number(machine.reputation.reliability_milli / 1000, 2),
  },
  {
    name: "earned", head: words.columns.earned, isRight: true, sort: (machine) => machine.earned_microcredits,
    cell: (machine) => credits(machine.earned_microcredits),
  },
  { name: "pause", head: words.columns.pause, isRight: true, cell: (machine) => <Pause machine={machine} /> },
];

// The machine that came after the command was made, as soon as it is there.
function Arrival({ machines }: { machines: readonly Machine[] }) {
  const known = useRef(new Set(machines.map((machine) => machine.id)));
  const arrived = machines.find((machine) => !known.current.has(machine.id));
  return (
    <p role="status" class={arrived ? "arrived" : "faint waiting"}>
      {arrived ? words.arrived(arrived.name) : words.waiting}
    </p>
  );
}

function Add({ machines, isAsked }: { machines: readonly Machine[]; isAsked: boolean }) {
  const [made, setMade] = useState<Made>();
  const [problem, setProblem] = useState<Error | null>(null);
  const make = async () => {
    setProblem(null);
    await lendCommand().then(setMade, setProblem);
  };
  const begun = useRef(false);
  useEffect(() => {
    if (!isAsked || begun.current) return;
    begun.current = true;
    void make();
  }, [isAsked]);
  return (
    <Card title={words.addTitle} class="lend">
      <ProblemNote problem={problem} />
      {made ? (
        <>
          <p>{words.run(timeShort(made.expires_ms))}</p>
          <Copy text={made.command} label={words.command} />
          <Arrival key={made.command} machines={machines} />
        </>
      ) : (
        <>
          <p class="faint">{words.intro}</p>
          <Button kind="primary" icon="plus" onClick={make}>
            {words.add}
          </Button>
        </>
      )}
    </Card>
  );
}

export default function Lend({ rest }: { rest: string[] }) {
  const { data, problem } = useResource(myMachines);
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      {data ? <Add machines={data} isAsked={rest[0] === "add"} /> : !problem && <Skeleton />}
      {data && (
        <Card title={words.machines}>
          {data.length === 0 ? (
            <Empty icon="lend" title={words.none}>
              {words.noneHint}
            </Empty>
          ) : (
            <Table label={words.machines} columns={columns} rows={data} rowKey={(machine) => machine.id} isStacked />
          )}
        </Card>
      )}
    </>
  );
}
