// Prices of the last seven days, today and the next two days, and how each came about.
import { creditsShort, date, short, timeOfDay, timeShort } from "../../core/format";
import { useResource } from "../../core/resource";
import { setQuery } from "../../core/router";
import { prices, unit } from "../../core/store";
import { market as words } from "../../text/en";
import { Chart } from "../../ui/chart";
import { Card, ProblemNote, Skeleton, State } from "../../ui/parts";
import { isPhone } from "../../ui/phone";
import { Table, type Column } from "../../ui/table";
import { Tabs } from "../../ui/tabs";
import { priceIn, priceNow, resources, slotsOf, storyOf, type Priced, type Prices as Known, type PriceSlot } from "./data";

const text = words.prices;
const tabs = resources.map((name) => ({ name, label: text.resources[name] }));
const amount = (micro: number | null) => (micro === null ? "–" : creditsShort(micro));
const hoursOf = (slot: PriceSlot) => `${timeOfDay(slot.start_ms)} – ${timeOfDay(slot.end_ms)}`;

const DAYS_S = 3 * 86_400; // longer ones have a tick for a day
const DAY_PX = 80; // "Wed, Nov 18"

function ticksOf(times: number[]) {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > DAYS_S;
  return isLong ? { tick: (seconds: number) => date(seconds * 1000), tick_px: DAY_PX } : {};
}

function Curve({ known, resource }: { known: Known; resource: Priced }) {
  const slots = slotsOf(known);
  const at = (slot: PriceSlot, isShown: boolean) => {
    const price = priceIn(slot, resource);
    return isShown && price !== null ? price / 1e6 : null;
  };
  // From its start to its end each: a price ends where its slot does.
  const both = (value: (slot: PriceSlot) => number | null) => slots.flatMap((slot) => [value(slot), value(slot)]);
  const past = both((slot) => at(slot, slot.state !== "forecast"));
  const coming = both((slot) => at(slot, slot.state !== "ended"));
  const times = slots.flatMap((slot) => [slot.start_ms / 1000, slot.end_ms / 1000 - 1]);
  const value = (price: number) => creditsShort(Math.round(price * 1e6));
  return (
    <Chart
      label={text.chart(text.resources[resource], amount(priceNow(known, resource)), unit.value, known.last_7_days.length)}
      x={{ label: text.when, isTime: true, values: (s) => timeShort(s * 1000), ...ticksOf(times) }}
      series={[
        { label: text.forecast, token: "--blue", isStepped: true, value },
        { label: text.paid, token: "--accent", isStepped: true, fill: true, value },
      ]}
      axes={[{ scale: "y", values: short, range: (_low, high) => [0, high > 0 ? high * 1.15 : 1] }]}
      data={[times, coming, past]}
      height={240}
    />
  );
}

function columns(selected: string): readonly Column<PriceSlot>[] {
  return [
    {
      name: "hours", head: text.hours, isRowHead: true,
      cell: (slot) => (
        <button type="button" class="button link" aria-pressed={slot.slot === selected} onClick={() => setQuery({ slot: slot.slot })}>
          {hoursOf(slot)}
        </button>
      ),
    },
    { name: "day", head: text.day, cell: (slot) => date(slot.start_ms) },
    { name: "state", head: text.state, cell: (slot) => <State state={slot.state} label={text.states[slot.state]} /> },
    ...resources.map((resource): Column<PriceSlot> => ({
      name: resource, head: text.perHour[resource], isRight: true, cell: (slot) => amount(priceIn(slot, resource)),
    })),
  ];
}

// Two lines there: hours and state, the day and the price of what is chosen above.
function phoneColumns(selected: string, resource: Priced): readonly Column<PriceSlot>[] {
  const [hours, , state] = columns(selected);
  const facts = (slot: PriceSlot) => `${date(slot.start_ms)} · ${text.priceOf(amount(priceIn(slot, resource)), text.perHour[resource])}`;
  return [hours!, state!, { name: "facts", head: text.day, cell: facts }];
}

interface SlotsProps {
  label: string;
  slots: readonly PriceSlot[];
  selected: string;
  resource: Priced;
}

function Slots({ label, slots, selected, resource }: SlotsProps) {
  return (
    <Table label={label} columns={isPhone.value ? phoneColumns(selected, resource) : columns(selected)} rows={slots} isTwoLined
      rowKey={(each) => each.slot} isSelected={(each) => each.slot === selected} />
  );
}

function Story({ slot, resource }: { slot: string; resource: Priced }) {
  const { data, problem } = useResource(storyOf(slot));
  const part = data?.resources.find((each) => each.resource === resource);
  return (
    <section class="story" aria-live="polite" aria-label={text.how}>
      <h3>{data ? text.howOf(text.resources[resource], timeShort(data.start_ms), timeOfDay(data.end_ms)) : text.how}</h3>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {part && <pre tabIndex={0} aria-label={text.how}>{part.explanation.trim()}</pre>}
    </section>
  );
}

export function Prices({ query }: { query: URLSearchParams }) {
  const { data: known, problem } = useResource(prices);
  const asked = query.get("price");
  const resource = resources.find((each) => each === asked) ?? "core";
  const slot = query.get("slot") ?? known?.slot;
  const today = new Set(known?.slots.map((each) => each.slot));
  const past = (known?.last_7_days ?? []).filter((each) => !today.has(each.slot)).sort((a, b) => b.start_ms - a.start_ms);
  return (
    <Card title={text.title} class="prices">
      <ProblemNote problem={problem} />
      {!known && !problem && <Skeleton lines={5} />}
      {known && (
        <>
          <p class="faint">{text.hint(unit.value)}</p>
          <Tabs label={text.title} tabs={tabs} selected={resource} onSelect={(price) => setQuery({ price })}>
            <Curve key={resource} known={known} resource={resource} />
          </Tabs>
          <Slots label={text.slots} slots={known.slots} selected={slot ?? ""} resource={resource} />
          {past.length > 0 && (
            <details class="past">
              <summary>{text.past}</summary>
              <Slots label={text.past} slots={past} selected={slot ?? ""} resource={resource} />
            </details>
          )}
          {slot && <Story slot={slot} resource={resource} />}
        </>
      )}
    </Card>
  );
}
