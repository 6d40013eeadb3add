// Adding a machine: one command with a one-time code, and the page notices when the machine arrives.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../../api/client";
import { now } from "../../core/clock";
import { timeShort } from "../../core/format";
import { link } from "../../core/router";
import { type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Card, Note, ProblemNote } from "../../ui/parts";
import { stageOf } from "./stage";

interface Made {
  command: string;
  expires_ms: number; // by the market's clock
}

// As `souk machines add` prints it.
async function lendCommand(): Promise<Made> {
  const [server, made] = await Promise.all([get("/v1/server"), post("/v1/machines/codes")]);
  const pin = server.url.startsWith("https://") ? ` --fingerprint ${made.fingerprint}` : "";
  return { command: `souk lend --server ${server.url}${pin} --code ${made.code}`, expires_ms: made.expires_ms };
}

interface CommandProps {
  made: Made;
  machines: readonly Machine[];
  onAgain: () => Promise<void>;
}

// The command, until the machine that came after it was made is there.
function Command({ made, machines, onAgain }: CommandProps) {
  const known = useRef(new Set(machines.map((machine) => machine.id)));
  const { stage, arrived } = stageOf(made.expires_ms, now.value, known.current, machines);
  if (arrived)
    return (
      <>
        <p role="status" class="arrived">
          {words.arrived(arrived.name)} <a href={link("lend", arrived.id)}>{words.setUp}</a>
        </p>
        <Button icon="plus" onClick={onAgain}>{words.another}</Button>
      </>
    );
  if (stage === "expired")
    return (
      <>
        <Note tone="warn">{words.expired}</Note>
        <Button kind="primary" icon="plus" onClick={onAgain}>{words.newCommand}</Button>
      </>
    );
  return (
    <>
      <p>{words.run(timeShort(made.expires_ms))}</p>
      <Copy text={made.command} label={words.command} />
      <p class="faint">{words.runHow}</p>
      <p role="status" class="faint waiting">{words.waiting}</p>
    </>
  );
}

export function Add({ machines, isAsked }: { machines: readonly Machine[]; isAsked: boolean }) {
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
        <Command key={made.command} made={made} machines={machines} onAgain={make} />
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
