// Estimates a month's earnings under the form's terms, at the prices of the last seven days. It is busy while it shows
// earlier terms.
import { useEffect, useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import { creditsShort, number, percent } from "../../core/format";
import { connection } from "../../core/live";
import { unit } from "../../core/store";
import { lend as words } from "../../text/en";
import { Figure, Figures, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";

type Found = Schemas["Estimate"];
type Slot = Found["slots"][number];

const CALM_MS = 250; // after the last change
const HOUR_MS = 3_600_000;
const text = words.estimate;

const columns = (): readonly Column<Slot>[] => [
  { name: "hours", head: text.hours, isRowHead: true, cell: (slot) => slot.hours.replace("-", "–") },
  { name: "open", head: text.open, isRight: true, cell: (slot) => text.openHours(number(slot.open_ms / HOUR_MS)) },
  { name: "price", head: text.coreHour, isRight: true, cell: (slot) => creditsShort(slot.core_hour_microcredits) },
  {
    name: "used", head: text.used, isRight: true,
    cell: (slot) => percent(slot.core_used_milli === null ? null : slot.core_used_milli / 1000, 0),
  },
  { name: "counts", head: text.counts, isRight: true, cell: (slot) => (slot.is_dear ? text.dear : slot.open_ms ? text.yes : text.closed) },
];

function useEstimate(machine: number, body: Schemas["OfferTerms"], isOn: boolean) {
  const [found, setFound] = useState<{ asked: string; answer: Found }>();
  const [problem, setProblem] = useState<Error | null>(null);
  const asked = JSON.stringify(body);
  const isLive = connection.value === "live"; // asked again when a market that was away is back
  useEffect(() => {
    if (!isOn) return;
    const stop = new AbortController();
    const ask = () =>
      post("/v1/machines/{id}/estimate", { path: { id: machine }, body, signal: stop.signal }).then(
        (answer) => { setFound({ asked, answer }); setProblem(null); },
        (failure: Error) => { if (!stop.signal.aborted) setProblem(failure); },
      );
    const timer = setTimeout(() => void ask(), CALM_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [machine, asked, isOn, isLive]);
  return { found: found?.answer, problem, isOld: found !== undefined && found.asked !== asked };
}

interface EstimateProps {
  machine: number;
  body: Schemas["OfferTerms"];
  missing: string; // why there is none; "": there is one
}

export function Estimate({ machine, body, missing }: EstimateProps) {
  const { found, problem, isOld } = useEstimate(machine, body, !missing);
  return (
    <section class="part estimate" aria-live="polite" aria-label={text.title} aria-busy={isOld && !missing && !problem ? "true" : undefined}>
      <h3>{text.title}</h3>
      {missing && <p class="faint">{missing}</p>}
      {!missing && <ProblemNote problem={problem} />}
      {!missing && !found && !problem && <Skeleton lines={2} />}
      {!missing && found && (
        <>
          <Figures>
            <Figure label={text.likely} unit={unit.value} note={found.likely_microcredits === null ? text.notYet : text.likelyNote}
              value={found.likely_microcredits === null ? "–" : creditsShort(found.likely_microcredits)} />
            <Figure label={text.full} value={creditsShort(found.full_microcredits)} unit={unit.value} note={text.fullNote} />
            <Figure label={text.openFor} value={number(found.open_ms / HOUR_MS)} unit={text.hoursOf(found.days)} />
          </Figures>
          <details>
            <summary>{text.from}</summary>
            <Table label={text.from} columns={columns()} rows={found.slots} rowKey={(slot) => slot.hours} isStacked />
          </details>
        </>
      )}
    </section>
  );
}
