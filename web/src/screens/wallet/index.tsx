// Balances and the statement.
import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { credits, time } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { account, entries, unit, type Entry } from "../../core/store";
import { wallet as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Card, Empty, Figure, Figures, Head, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";

const sign = (entry: Entry) => ({ in: "+", out: "−", inside: "" })[entry.direction];

const columns = (): readonly Column<Entry>[] => [
  { name: "when", head: words.columns.when, cell: (entry) => time(entry.at_ms) },
  { name: "what", head: words.columns.what, cell: (entry) => words.kinds[entry.kind] },
  {
    name: "job", head: words.columns.job, isWideOnly: true,
    cell: (entry) => (entry.job && entry.job_name ? <a href={link("jobs", entry.job)}>{entry.job_name}</a> : entry.job || ""),
  },
  {
    name: "amount", head: unit.value, isRight: true,
    cell: (entry) => (
      <span class={entry.direction}>
        {sign(entry)}
        {credits(Math.abs(entry.amount_microcredits))}
      </span>
    ),
  },
];

export default function Wallet() {
  const { data: known } = useResource(account);
  const { data: newest, problem } = useResource(entries);
  const [older, setOlder] = useState<Entry[]>([]);
  const [cursor, setCursor] = useState<string | null | undefined>(undefined);
  const following = cursor === undefined ? newest?.next_cursor : cursor;
  const load = async () => {
    const page = await get("/v1/account/entries", { query: { limit: 25, cursor: following ?? undefined } });
    setOlder([...older, ...page.items]);
    setCursor(page.next_cursor);
  };
  const seen = new Set(newest?.items.map((entry) => entry.id));
  const rows = [...(newest?.items ?? []), ...older.filter((entry) => !seen.has(entry.id))];
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      {known && (
        <Figures isCard>
          <Figure label={words.available} value={credits(known.available_microcredits)} unit={unit.value} />
          <Figure label={words.held} value={credits(known.held_microcredits)} />
          <Figure label={words.spent} value={credits(known.spent_microcredits)} />
          <Figure label={words.earned} value={credits(known.earned_microcredits)} />
          {known.withheld_microcredits > 0 && <Figure label={words.withheld} value={credits(known.withheld_microcredits)} />}
        </Figures>
      )}
      <Card title={words.statement} class="statement">
        {!newest && !problem && <Skeleton />}
        {newest && rows.length === 0 && <Empty icon="wallet" title={words.none} />}
        {rows.length > 0 && <Table label={words.statement} columns={columns()} rows={rows} rowKey={(entry) => entry.id} />}
        {following && <Button onClick={load}>{words.older}</Button>}
      </Card>
    </>
  );
}
