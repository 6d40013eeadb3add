// Proves the books from their first entry, in a process of the market's own, and says what came of it.
import { get, post, type Schemas } from "../../api/client";
import { useAgain } from "../../core/fresh";
import { credits, number, time } from "../../core/format";
import { resource } from "../../core/resource";
import { unit } from "../../core/store";
import { operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Card, Figure, Figures, Note, ProblemNote, Skeleton, State } from "../../ui/parts";

const audit = resource(() => get("/v1/audits"), []);
const AGAIN_MS = 1000; // no event tells of its end

function Report({ report }: { report: Schemas["AuditReport"] }) {
  return (
    <>
      <Figures>
        <Figure label={words.auditEvents} value={number(report.events)} />
        <Figure label={words.auditEntries} value={number(report.entries)} />
        <Figure label={words.auditPrices} value={number(report.prices)} />
        <Figure label={words.credits(unit.value)} value={credits(report.minted_microcredits)} />
        <Figure label={words.auditSum} value={credits(report.ledger_sum_microcredits)} note={words.auditSumNote} />
      </Figures>
      {report.findings.map((finding, index) => (
        <Note key={index} tone="bad">{finding}</Note>
      ))}
    </>
  );
}

export function Audit() {
  const isRunning = audit.data.value?.state === "running";
  const { data, problem } = useAgain(audit, isRunning ? AGAIN_MS : 0);
  const start = async () => {
    await post("/v1/audits");
    await audit.refresh();
  };
  const isSound = data?.report?.is_sound;
  return (
    <Card title={words.audit} class="audit"
      action={data?.report && <State state={isSound ? "succeeded" : "failed"} label={isSound ? words.sound : words.unsound} />}>
      <p class="faint">{words.auditHint}</p>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data && data.started_ms > 0 && <p>{words.auditStates[data.state]} {time(data.ended_ms || data.started_ms)}</p>}
      {data?.report && <Report report={data.report} />}
      <Button isBusy={isRunning} onClick={start}>
        {words.auditStart}
      </Button>
    </Card>
  );
}
