// What the job costs in each slot to come, as bars, with the price of a core hour beside them.
import { creditsShort, timeShort } from "../../core/format";
import { useResource } from "../../core/resource";
import { prices, unit } from "../../core/store";
import { train } from "../../text/en";
import { Bar, Card, Note, Skeleton, State } from "../../ui/parts";
import type { Check } from "./checking";
import type { Draft } from "./draft";

const words = train.machines;
type Slot = NonNullable<Check["slots"]>[number];

const isBefore = (slot: Slot, draft: Draft) => draft.start !== "cheapest" || slot.start_ms < new Date(draft.before).getTime();

// Of the slots it could start in, those of the least cost; none where all cost the same.
function cheapestOf(slots: Slot[]): Set<string> {
  const least = Math.min(...slots.map((slot) => slot.wish_microcredits));
  const found = slots.filter((slot) => slot.wish_microcredits === least);
  return new Set(found.length === slots.length ? [] : found.map((slot) => slot.slot));
}

// The one that a job for the cheapest slot waits for by today's forecasts: the first of the least cost; null: now.
export function waitedFor(check: Check, draft: Draft): Slot | null {
  const slots = (check.slots ?? []).filter((slot) => isBefore(slot, draft));
  const least = Math.min(...slots.map((slot) => slot.wish_microcredits));
  const found = draft.start === "cheapest" ? slots.find((slot) => slot.wish_microcredits === least) : undefined;
  return found && found.state !== "running" ? found : null;
}

// The machines that would be taken cost something else than what was asked for: faster, larger, dearer.
export const placedApart = ({ quote, held_microcredits }: Check) => quote !== null && held_microcredits !== quote.wish_microcredits;

export function Slots({ check, draft }: { check: Check | undefined; draft: Draft }) {
  const { data: now } = useResource(prices);
  const slots = check?.slots;
  const isIn = (slot: Slot) => isBefore(slot, draft);
  const quote = check?.quote;
  const likely = quote && quote.expected_run_ms < quote.max_run_ms ? quote.expected_run_ms / quote.max_run_ms : null;
  const most = Math.max(1, ...(slots ?? []).map((slot) => slot.wish_microcredits));
  const cheapest = cheapestOf((slots ?? []).filter(isIn));
  const core = (slot: Slot) => now?.slots.find((each) => each.slot === slot.slot)?.core_hour_microcredits;
  return (
    <Card title={words.slots}>
      <p class="faint">{check && !slots ? words.slotsWait : words.slotsHint}</p>
      {!check && <Skeleton lines={4} />}
      {slots && (
        <ul class="slots">
          {slots.map((slot) => {
            const cost = creditsShort(slot.wish_microcredits);
            const hour = core(slot);
            return (
              <li key={slot.slot} class={isIn(slot) ? undefined : "beyond"}>
                <span>
                  {slot.state === "running" ? words.slotNow : timeShort(slot.start_ms)}{" "}
                  {cheapest.has(slot.slot) && <State state="succeeded" label={words.cheapest} />}
                  {!isIn(slot) && <small class="faint">{words.beyond}</small>}
                </span>
                <Bar share={slot.wish_microcredits / most} label={words.bar(cost, unit.value)} />
                <span class="right">
                  <strong>{cost}</strong> {unit.value}
                  {likely !== null && <small class="faint">{words.likely(creditsShort(slot.wish_microcredits * likely))}</small>}
                  {hour !== null && hour !== undefined && <small class="faint">{words.slotCore} {creditsShort(hour)}</small>}
                </span>
              </li>
            );
          })}
        </ul>
      )}
      {check && placedApart(check) && <Note>{words.placed(creditsShort(check.held_microcredits), unit.value)}</Note>}
    </Card>
  );
}
