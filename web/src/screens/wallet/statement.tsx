// What came and went, with what was only set aside apart from what was paid.
import { entryWords } from "../../core/entry";
import { credits, number, time, timeShort } from "../../core/format";
import { useResource } from "../../core/resource";
import { link, setQuery } from "../../core/router";
import { jobs, myMachines, unit, type Entry } from "../../core/store";
import { wallet as words } from "../../text/en";
import { Button } from "../../ui/button";
import { isPhone } from "../../ui/phone";
import { save } from "../../ui/save";
import { Select } from "../../ui/field";
import { Card, Empty, Figure, Figures, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { Tabs } from "../../ui/tabs";
import { filterOf, isFiltered, kindsOf, readStatement, SHOWN_MAX, statement, views, type Filter, type Kind, type Statement } from "./read";

const sign = (entry: Entry) => ({ in: "+", out: "−", inside: words.insideSign })[entry.direction];

// The market's own memos say no more than the kind.
function noteOf(entry: Entry): string {
  const memo = entry.kind === "transfer" && entry.memo !== "transfer" ? entry.memo : "";
  const withheld = entry.withheld_microcredits > 0 ? words.withheldPart(credits(entry.withheld_microcredits)) : "";
  return [memo, withheld].filter(Boolean).join(" · ");
}

function What({ entry }: { entry: Entry }) {
  const note = noteOf(entry);
  return (
    <>
      {entryWords(entry)} {note && <span class="memo faint" title={note}>{note}</span>}
    </>
  );
}

const withOf = (entry: Entry) => entry.machine_name || (entry.direction === "inside" ? "" : entry.other_account_name);

function Job({ entry }: { entry: Entry }) {
  return entry.job && entry.job_name ? <a href={link("jobs", entry.job)}>{entry.job_name}</a> : <>{entry.job || ""}</>;
}

const amountColumn = (): Column<Entry> => ({
  name: "amount", head: unit.value, isRight: true,
  cell: (entry) => (
    <span class={entry.direction} title={entry.direction === "inside" ? words.insideHint : undefined}>
      {sign(entry)}
      {credits(Math.abs(entry.amount_microcredits))}
    </span>
  ),
});

const columns = (): readonly Column<Entry>[] => [
  { name: "when", head: words.columns.when, cell: (entry) => time(entry.at_ms) },
  { name: "what", head: words.columns.what, cell: (entry) => <What entry={entry} /> },
  { name: "with", head: words.columns.with, cell: withOf },
  { name: "job", head: words.columns.job, cell: (entry) => <Job entry={entry} /> },
  amountColumn(),
];

// Two lines: what and how much, then when, with whom and for which job.
const phoneColumns = (): readonly Column<Entry>[] => [
  { name: "what", head: words.columns.what, cell: (entry) => <What entry={entry} /> },
  amountColumn(),
  {
    name: "about", head: words.columns.when,
    cell: (entry) => (
      <>
        {[timeShort(entry.at_ms), withOf(entry)].filter(Boolean).join(" · ")}
        {entry.job > 0 && <> · {entry.job_name ? <Job entry={entry} /> : words.jobNumbered(entry.job)}</>}
      </>
    ),
  },
];

interface Named {
  id: number;
  name: string;
}

// Whatever the address asks for can be chosen, though it may be older than what is listed.
function choicesOf(all: string, listed: readonly Named[], chosen: number) {
  const older = chosen && !listed.some((each) => each.id === chosen) ? [{ value: String(chosen), label: words.numbered(chosen) }] : [];
  return [{ value: "", label: all }, ...listed.map((each) => ({ value: String(each.id), label: `${each.name} (${each.id})` })), ...older];
}

function Filters({ filter }: { filter: Filter }) {
  const { data: mine } = useResource(jobs);
  const { data: lent } = useResource(myMachines);
  const kinds = [{ value: "" as const, label: words.everyKind }, ...kindsOf[filter.view].map((value) => ({ value, label: words.kinds[value] }))];
  return (
    <div class="together">
      <Select<Kind | ""> label={words.kind} name="kind" value={filter.kind} choices={kinds} onValue={(kind) => setQuery({ kind })} />
      {((mine?.items.length ?? 0) > 0 || filter.job > 0) && (
        <Select label={words.job} name="job" value={filter.job ? String(filter.job) : ""}
          choices={choicesOf(words.everyJob, mine?.items ?? [], filter.job)}
          onValue={(job) => setQuery({ job, machine: undefined })} />
      )}
      {((lent?.length ?? 0) > 0 || filter.machine > 0) && (
        <Select label={words.machine} name="machine" value={filter.machine ? String(filter.machine) : ""}
          choices={choicesOf(words.everyMachine, lent ?? [], filter.machine)}
          onValue={(machine) => setQuery({ machine, job: undefined })} />
      )}
    </div>
  );
}

function Sums({ sums }: { sums: NonNullable<Statement["sums"]> }) {
  return (
    <Figures>
      {sums.held_microcredits > 0 && <Figure label={words.sums.held} value={credits(sums.held_microcredits)} />}
      <Figure label={words.sums.posted} value={credits(sums.posted_microcredits)} />
      <Figure label={words.sums.fee} value={credits(sums.fee_microcredits)} />
      {sums.held_microcredits > 0 && <Figure label={words.sums.voided} value={credits(sums.voided_microcredits)} />}
    </Figures>
  );
}

function Entries({ owner, filter }: { owner: number; filter: Filter }) {
  const reading = statement(owner, filter);
  const { data, problem } = useResource(reading.resource);
  return (
    <>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data?.sums && <Sums sums={data.sums} />}
      {data?.entries.length === 0 && <Empty icon="wallet" title={isFiltered(filter) ? words.noneSuch : words.none} />}
      {data && data.entries.length > 0 && (
        <Table label={words.statement} columns={isPhone.value ? phoneColumns() : columns()} rows={data.entries}
          rowKey={(entry) => entry.id} isTwoLined />
      )}
      {data?.hasMore && (
        <div class="row">
          {data.entries.length < SHOWN_MAX && <Button onClick={reading.readMore}>{words.older}</Button>}
          <span class="faint">{words.shown(number(data.entries.length))}</span>
        </div>
      )}
    </>
  );
}

export function StatementCard({ owner, query }: { owner: number; query: URLSearchParams }) {
  const filter = filterOf(query);
  const tabs = views.map((name) => ({ name, label: words.views[name] }));
  const download = async () => save(await readStatement(filter), words.csvName);
  return (
    <Card title={words.statement} class="statement"
      action={<Button icon="download" onClick={download}>{words.csv}</Button>}>
      <Tabs label={words.statement} tabs={tabs} selected={filter.view}
        onSelect={(view) => setQuery({ view: view === "all" ? undefined : view, kind: undefined })}>
        <p class="faint">{words.viewHints[filter.view]}</p>
        <Filters filter={filter} />
        <Entries owner={owner} filter={filter} />
      </Tabs>
    </Card>
  );
}
