// How the economy is: who is there, what is given out, what is lent.
import { get, type Schemas } from "../../api/client";
import { credits, number, percent, thousandths } from "../../core/format";
import { resource, useResource } from "../../core/resource";
import { unit } from "../../core/store";
import { operator as words } from "../../text/en";
import { Card, Figure, Figures, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";

type Lent = Schemas["MarketHealth"]["resources"][number];
const economy = resource(() => get("/v1/market"), ["machines", "jobs"], { every_ms: 5000 });

const columns: readonly Column<Lent>[] = [
  { name: "resource", head: words.resourceColumns.resource, isRowHead: true, cell: (lent) => words.resourceNames[lent.resource] },
  { name: "lent", head: words.resourceColumns.lent, isRight: true, cell: (lent) => thousandths(lent.lent_milli) },
  { name: "leased", head: words.resourceColumns.leased, isRight: true, cell: (lent) => thousandths(lent.leased_milli) },
  { name: "largest", head: words.resourceColumns.largest, isRight: true,
    cell: (lent) => percent(lent.largest_lender_basis_points / 10_000) },
];

export function Economy() {
  const { data, problem } = useResource(economy);
  return (
    <Card title={words.economy} class="economy">
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data && (
        <>
          <Figures>
            <Figure label={words.members} value={number(data.member_count)} note={words.active(number(data.active_count))} />
            <Figure label={words.credits(unit.value)} value={credits(data.credits_microcredits)} />
            <Figure label={words.poor} value={number(data.poor_count)} />
            <Figure label={words.weekly} value={credits(data.weekly_spend_microcredits)} />
            <Figure label={words.weeks} value={data.weeks_of_spend_milli ? number(data.weeks_of_spend_milli / 1000, 1) : "–"}
              note={data.weeks_of_spend_milli ? words.weeksGood : words.nobodySpent} />
            <Figure label={words.index} value={number(data.price_index_milli / 1000, 3)} note={words.indexNote} />
          </Figures>
          <Table label={words.resources} columns={columns} rows={data.resources} rowKey={(lent) => lent.resource} />
        </>
      )}
    </Card>
  );
}
