// The table of all machines; of ten thousand only those in sight are drawn. The address keeps filters and order.
import { useMemo } from "preact/hooks";
import { bytes, credits, number, thousandths } from "../../core/format";
import { useResource } from "../../core/resource";
import { link, setQuery } from "../../core/router";
import { unit, type Machine } from "../../core/store";
import { common, market as words } from "../../text/en";
import { MachineState } from "../../ui/machine_state";
import { Select } from "../../ui/field";
import { Card, Empty } from "../../ui/parts";
import { isPhone } from "../../ui/phone";
import { Table, type Column, type Order } from "../../ui/table";
import { spare as spareMachines } from "./data";
import { FilterRow, ShowAll } from "./filters";
import { asked, filtersOf, matching, orders, rtt_us } from "./matching";

const isServerOnly = (machine: Machine) => machine.offer.roles.length === 1 && machine.offer.roles[0] === "server";

type Spare = ReadonlySet<number>;
const none: Spare = new Set();

const columns = (spare: Spare): readonly Column<Machine>[] => [
  {
    name: "name", head: words.columns.name, isRowHead: true, sort: orders.name,
    cell: (machine) => (
      <span title={machine.probe.cpu_model}>
        {machine.is_mine ? <a href={link("lend", machine.id)}>{machine.name}</a> : machine.name}
        {isServerOnly(machine) && <span class="faint"> · {words.server}</span>}
        {spare.has(machine.id) && <span class="faint spare"> · {words.spare}</span>}
      </span>
    ),
  },
  { name: "state", head: words.columns.state, sort: orders.state, cell: (machine) => <MachineState machine={machine} /> },
  {
    name: "free", head: words.columns.free, sort: orders.free,
    cell: (machine) => (
      <>
        {thousandths(machine.free.cores_milli)} <span class="faint">{words.of(thousandths(machine.offer.cores_milli))}</span>
      </>
    ),
  },
  {
    name: "memory", head: words.columns.memory, sort: orders.memory,
    cell: (machine) => (
      <>
        {bytes(machine.free.ram_bytes)} <span class="faint">{words.of(bytes(machine.offer.ram_bytes))}</span>
      </>
    ),
  },
  {
    name: "gpus", head: words.columns.gpus, isRight: true, sort: orders.gpus,
    cell: (machine) => (machine.offer.gpus_milli ? <span title={machine.probe.gpu_model}>{number(machine.offer.gpus_milli / 1000)}</span> : "–"),
  },
  {
    name: "speed", head: words.columns.speed, isRight: true, sort: orders.speed,
    cell: (machine) => `× ${number(machine.probe.speed_weight_milli / 1000, 2)}`,
  },
  {
    name: "rtt", head: words.columns.rtt, isRight: true, sort: orders.rtt,
    cell: (machine) => (rtt_us(machine) ? rttWords(machine) : "–"),
  },
  {
    name: "price", head: words.columns.price, isRight: true, sort: orders.price,
    cell: (machine) => (asked(machine) ? credits(asked(machine)) : words.marketPrice),
  },
  {
    name: "reliability", head: words.columns.reliability, isRight: true,
    sort: orders.reliability,
    cell: (machine) => number(machine.reputation.reliability_milli / 1000, 2),
  },
  {
    name: "lender", head: words.columns.lender, sort: orders.lender,
    cell: (machine) => (machine.is_mine ? common.you : machine.account_name),
  },
  {
    name: "earned", head: words.columns.earned(unit.value), isRight: true, sort: orders.earned,
    cell: (machine) => credits(machine.earned_microcredits),
  },
];

const rttWords = (machine: Machine) => words.ms(number(rtt_us(machine) / 1000, rtt_us(machine) < 10_000 ? 2 : 0));

// The second line of a machine on a phone.
function facts(machine: Machine): string {
  const gpus_milli = machine.offer.gpus_milli ?? 0;
  return [
    words.coresFree(thousandths(machine.free.cores_milli), thousandths(machine.offer.cores_milli)),
    bytes(machine.free.ram_bytes),
    gpus_milli > 0 && words.gpuCount(gpus_milli / 1000),
    `× ${number(machine.probe.speed_weight_milli / 1000, 2)}`,
    rtt_us(machine) > 0 && rttWords(machine),
    asked(machine) > 0 && words.least(credits(asked(machine))),
  ].filter(Boolean).join(" · ");
}

// Two lines there: its name and state, and what it has. All that a laptop sorts by is in the order's choices.
function phoneColumns(all: readonly Column<Machine>[]): readonly Column<Machine>[] {
  const [name, state, ...others] = all;
  const shown = { name: "facts", head: words.machines, cell: facts };
  return [name!, state!, shown, ...others.map((column) => ({ ...column, isHidden: true }))];
}

function orderOf(query: URLSearchParams): Order | undefined {
  const asked = query.get("sort") ?? "";
  return asked ? { column: asked.replace(/^-/, ""), isDown: asked.startsWith("-") } : undefined;
}
const orderWords = ({ column, isDown }: Order) => `${isDown ? "-" : ""}${column}`;

function OrderChoice({ all, order }: { all: readonly Column<Machine>[]; order: Order | undefined }) {
  const choices = all.filter((column) => column.sort).map((column) => {
    const value = orderWords({ column: column.name, isDown: column.isRight === true });
    return { value, label: column.head };
  });
  const here = all.find((column) => column.name === order?.column);
  if (here && !choices.some(({ value }) => value === orderWords(order!)))
    choices.push({ value: orderWords(order!), label: words.filters.reversed(here.head) });
  return (
    <Select label={words.filters.sort} name="sort" value={order ? orderWords(order) : ""} onValue={(sort) => setQuery({ sort })}
      choices={[{ value: "", label: words.filters.anyOrder }, ...choices]} />
  );
}

export function Machines({ machines, query }: { machines: readonly Machine[]; query: URLSearchParams }) {
  const { data: spare = none } = useResource(spareMachines);
  const filters = filtersOf(query);
  const order = orderOf(query);
  const shown = useMemo(() => matching(machines, filters, spare), [machines, spare, JSON.stringify(filters)]);
  const all = useMemo(() => columns(spare), [unit.value, spare]);
  const head = useMemo(() => (isPhone.value ? phoneColumns(all) : all), [all, isPhone.value]);
  return (
    <Card title={words.machines} class="machines" action={(
      <>
        <ShowAll filters={filters} />
        <span class="faint" role="status">{words.count(shown.length, machines.length)}</span>
      </>
    )}>
      {machines.length === 0 && <Empty icon="market" title={words.none}>{words.noneHint}</Empty>}
      {machines.length > 0 && (
        <FilterRow filters={filters}>
          {isPhone.value && <OrderChoice all={all} order={order} />}
        </FilterRow>
      )}
      {machines.length > 0 && shown.length === 0 && <Empty icon="search" title={words.noneMatches} />}
      {shown.length > 0 && (
        <Table label={words.machines} columns={head} rows={shown} rowKey={(machine) => machine.id} isTwoLined
          order={order} onOrder={(next) => setQuery({ sort: orderWords(next) })} />
      )}
      {spare.size > 0 && <p class="faint spare-note">{words.spareNote}</p>}
    </Card>
  );
}
