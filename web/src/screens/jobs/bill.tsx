// What a job cost, lease by lease, and every entry of it as CSV.
import { get, type Schemas } from "../../api/client";
import { readCsv } from "../../api/csv";
import { credits, duration, number } from "../../core/format";
import { resourceOf, useResource } from "../../core/resource";
import { unit } from "../../core/store";
import { jobs as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Card, Figure, Figures, ProblemNote, Skeleton } from "../../ui/parts";
import { save } from "../../ui/save";
import { isLong, Table, type Column } from "../../ui/table";
import { byRole, roleName } from "./names";

type Line = Schemas["Bill"]["lines"][number];

const billOf = resourceOf((id: number) => get("/v1/jobs/{id}/bill", { path: { id } }), ["job"], { every_ms: 2000 });

const columns: readonly Column<Line>[] = [
  { name: "machine", head: words.bill.machine, isRowHead: true, sort: (line) => line.machine_name, cell: (line) => line.machine_name },
  { name: "role", head: words.bill.role, sort: roleName, cell: roleName },
  { name: "ticks", head: words.bill.ticks, isRight: true, sort: (line) => line.ticks, cell: (line) => number(line.ticks) },
  { name: "time", head: words.bill.time, isRight: true, sort: (line) => line.billed_ms, cell: (line) => duration(line.billed_ms) },
  { name: "earned", head: words.bill.earned, isRight: true, sort: (line) => line.earned_microcredits,
    cell: (line) => credits(line.earned_microcredits) },
  { name: "fee", head: words.bill.fee, isRight: true, sort: (line) => line.fee_microcredits, cell: (line) => credits(line.fee_microcredits) },
  { name: "paid", head: words.bill.paid, isRight: true, sort: (line) => line.posted_microcredits,
    cell: (line) => credits(line.posted_microcredits) },
];

// On a phone; the CSV has all of it.
const dropped = ["ticks", "time", "earned", "fee"];
const columnsLong = columns.map((column) => ({ ...column, isWideOnly: dropped.includes(column.name) }));

export function JobBill({ id }: { id: number }) {
  const { data: bill, problem } = useResource(billOf(id));
  const csv = async () => save(await readCsv(`/v1/jobs/${id}/entries?format=csv&order=oldest&limit=500`), `job-${id}.csv`);
  return (
    <Card title={words.bill.title} action={<Button icon="download" onClick={csv}>{words.bill.csv}</Button>}>
      <ProblemNote problem={problem} />
      {!bill && !problem && <Skeleton lines={4} />}
      {bill && (
        <>
          <Figures>
            <Figure label={words.figures.spent} value={credits(bill.spent_microcredits)} unit={unit.value} />
            <Figure label={words.figures.fee} value={credits(bill.fee_microcredits)} unit={unit.value} />
            <Figure label={words.figures.held} value={credits(bill.held_microcredits)} unit={unit.value} />
            <Figure label={words.figures.quoted} value={credits(bill.quoted_microcredits)} unit={unit.value} />
          </Figures>
          {bill.lines.length ? (
            <Table label={words.bill.title} columns={isLong(bill.lines) ? columnsLong : columns} rows={[...bill.lines].sort(byRole)} rowKey={(line) => line.lease} isStacked />
          ) : (
            <p class="faint">{words.bill.none}</p>
          )}
          {bill.ledger_sum_microcredits === 0 && <p class="faint">{words.bill.balanced}</p>}
        </>
      )}
    </Card>
  );
}
