// How reliable the machine is, and the sum that says so with its own numbers.
import { creditsShort, duration, number, percent } from "../../core/format";
import { unit, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Card, Figure, Figures, State } from "../../ui/parts";

const text = words.reputation;

export function Reputation({ machine }: { machine: Machine }) {
  const known = machine.reputation;
  const [completed, lost, reclaimed] = [known.completed_milli, known.lost_milli, known.reclaimed_milli].map((milli) => number(milli / 1000, 2));
  const result = number(known.reliability_milli / 1000, 3);
  return (
    <Card title={text.title} class="reputation"
      action={<State state={known.is_proven ? "free" : "pending"} label={known.is_proven ? text.proven : text.unproven} />}>
      <Figures>
        <Figure label={text.reliability} value={result} />
        <Figure label={text.completed} value={number(known.completed)} />
        <Figure label={text.lost} value={number(known.lost)} />
        <Figure label={text.reclaimed} value={number(known.reclaimed)} />
        <Figure label={text.failed} value={number(known.failed)} note={text.failedNote} />
        <Figure label={text.delivered} value={percent(known.leased_ms ? known.delivered_ms / known.leased_ms : null)}
          note={text.deliveredNote(duration(known.delivered_ms), duration(known.leased_ms))} />
      </Figures>
      <p>{text.how}</p>
      <pre tabIndex={0} aria-label={text.formula}>{text.sum(completed!, lost!, reclaimed!, result)}</pre>
      <p class="faint">{text.faded}</p>
      {!known.is_proven && (
        <p class="faint">{text.unprovenNote(`${creditsShort(known.withheld_microcredits)} ${unit.value}`)}</p>
      )}
    </Card>
  );
}
