// The account's jobs, newest first, a page at a time.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { marketNow } from "../../core/clock";
import { credits, percent, time } from "../../core/format";
import { resourceOf, useResource } from "../../core/resource";
import { link, setQuery } from "../../core/router";
import { unit, type Job } from "../../core/store";
import { common, jobs as words } from "../../text/en";
import { Copy } from "../../ui/copy";
import { Field, Select } from "../../ui/field";
import { Bar, Card, Empty, Head, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { training } from "..";
import { accuracy, predictsNumbers } from "./names";
import { progress } from "./progress";

type JobState = Schemas["JobState"];
interface Listed extends Job {
  detail?: Schemas["JobDetail"]; // of one that runs: how long it will take
}
interface Shown {
  items: Listed[];
  next_cursor: string | null;
}

const PAGE = 25;
const LOOKS_MAX = 50;
const NAME_MAX = 64;
const TYPED_MS = 250;
const states: readonly JobState[] = ["pending", "starting", "running", "stopping", "succeeded", "failed", "cancelled"];

async function read(key: string): Promise<Shown> {
  const query = new URLSearchParams(key);
  const state = states.find((name) => name === query.get("state"));
  const name = query.get("name") ?? undefined;
  const read = (cursor: string | undefined) => get("/v1/jobs", { query: { state, name, cursor, limit: PAGE } });
  let page = await read(query.get("cursor") ?? undefined);
  // Of many jobs the market looks at some at a time: on to the first that match.
  for (let looks = 1; looks < LOOKS_MAX && page.items.length === 0 && page.next_cursor; looks++) page = await read(page.next_cursor);
  const items = await Promise.all(
    page.items.map(async (job): Promise<Listed> =>
      job.state === "running" ? { ...job, detail: await get("/v1/jobs/{id}", { path: { id: job.id } }) } : job),
  );
  return { items, next_cursor: page.next_cursor };
}

const listOf = resourceOf(read, ["jobs"], { every_ms: 1000 });

function Progress({ job }: { job: Listed }) {
  const share = job.detail ? progress(job.detail, marketNow()) : null;
  return share === null ? null : <Bar share={share} label={words.progress(percent(share, 0))} />;
}

const columns: readonly Column<Listed>[] = [
  { name: "name", head: words.columns.name, isRowHead: true, sort: (job) => job.name,
    cell: (job) => <a class="name" href={link("jobs", job.id)}>{job.name}</a> },
  { name: "state", head: words.columns.state, sort: (job) => job.state,
    cell: (job) => (
      <>
        <State state={job.state} label={common.states[job.state]} />
        <span class="narrow-only">
          <Progress job={job} />
        </span>
      </>
    ) },
  { name: "progress", head: words.columns.progress, isWideOnly: true, cell: (job) => <Progress job={job} /> },
  { name: "created", head: words.columns.created, isWideOnly: true, sort: (job) => job.created_ms, cell: (job) => time(job.created_ms) },
  { name: "accuracy", head: words.columns.accuracy, isRight: true, isWideOnly: true, sort: (job) => job.test_accuracy ?? -Infinity,
    cell: (job) => (predictsNumbers(job) && job.test_accuracy !== null ? words.r2(accuracy(job)) : accuracy(job)) },
  { name: "held", head: words.columns.held, isRight: true, isWideOnly: true, sort: (job) => job.held_microcredits,
    cell: (job) => credits(job.held_microcredits) },
  { name: "spent", head: words.columns.spent, isRight: true, sort: (job) => job.spent_microcredits,
    cell: (job) => credits(job.spent_microcredits) },
];

function None({ state, name }: { state: JobState | undefined; name: string }) {
  return (
    <Card>
      {name ? (
        <Empty icon="search" title={words.noneNamed(name)}>
          <a href={link("jobs")}>{words.noneOfStateHint}</a>
        </Empty>
      ) : state ? (
        <Empty icon="jobs" title={words.noneOfState(common.states[state]!)}>
          <a href={link("jobs")}>{words.noneOfStateHint}</a>
        </Empty>
      ) : (
        <Empty icon="jobs" title={words.none}>
          <a class="button primary" href={link(training)}>{words.train}</a>
          <p class="faint">{words.noneHint}</p>
          <Copy text={words.submitCommand} label={words.command} />
        </Empty>
      )}
    </Card>
  );
}

// What is typed goes into the address a moment after the last key, and is searched for then.
function Search({ name }: { name: string }) {
  const [typed, setTyped] = useState(name);
  const sent = useRef(name);
  useEffect(() => {
    if (typed.trim() === name) return;
    const timer = setTimeout(() => {
      sent.current = typed.trim();
      setQuery({ name: sent.current || undefined, cursor: undefined });
    }, TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed, name]);
  useEffect(() => {
    if (name === sent.current) return; // what was typed since stays
    sent.current = name;
    setTyped(name);
  }, [name]);
  return <Field label={words.search} value={typed} onValue={setTyped} native={{ name: "search", type: "search", maxLength: NAME_MAX, autocomplete: "off" }} />;
}

export function JobList({ query }: { query: URLSearchParams }) {
  const state = states.find((name) => name === query.get("state"));
  const name = (query.get("name") ?? "").slice(0, NAME_MAX);
  const cursor = query.get("cursor") ?? "";
  const asked = { ...(state ? { state } : {}), ...(name ? { name } : {}) };
  const { data, problem } = useResource(listOf(new URLSearchParams({ ...asked, ...(cursor ? { cursor } : {}) }).toString()));
  const address = (place: string | null) => {
    const search = new URLSearchParams({ ...asked, ...(place ? { cursor: place } : {}) });
    return search.size ? `${link("jobs")}?${search}` : link("jobs");
  };
  return (
    <>
      <Head title={words.title}>
        <div class="filter">
          <Search name={name} />
          <Select label={words.filter} name="state" value={state ?? ""} onValue={(name) => setQuery({ state: name || undefined, cursor: undefined })}
            choices={[{ value: "", label: words.all }, ...states.map((name) => ({ value: name, label: common.states[name]! }))]} />
        </div>
      </Head>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton lines={6} />}
      {data?.items.length === 0 && <None state={state} name={name} />}
      {data && data.items.length > 0 && (
        <Card title={words.table} action={<span class="faint">{words.amountsIn(unit.value)}</span>} class="jobs">
          <Table label={words.table} columns={columns} rows={data.items} rowKey={(job) => job.id} />
        </Card>
      )}
      {data && (cursor || data.next_cursor) && (
        <nav class="row pages" aria-label={words.table}>
          {cursor && <a href={address(null)}>{words.newest}</a>}
          <span class="grow" />
          {data.next_cursor && <a href={address(data.next_cursor)}>{words.older}</a>}
        </nav>
      )}
    </>
  );
}
