// One job: its figures, and under tabs its curves and lanes, who works for it, logs, bill and what it left.
import { useEffect, useMemo } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { useMarketNow } from "../../core/clock";
import { credits, duration, number, percent, short, time } from "../../core/format";
import { hear } from "../../core/live";
import { heldLeases } from "../../core/machine";
import { useResource } from "../../core/resource";
import { go, link } from "../../core/router";
import { hasEnded, jobOf, metricsOf, unit } from "../../core/store";
import { common, jobs as words } from "../../text/en";
import { Icon } from "../../ui/icon";
import { Bar, Card, Figure, Figures, Head, Note, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Tabs } from "../../ui/tabs";
import { Actions } from "./actions";
import { JobBill } from "./bill";
import { Curve } from "./curve";
import { Ending } from "./ending";
import { Explain } from "./explain";
import { Lanes } from "./lanes";
import { Leases } from "./leases";
import { Logs } from "./logs";
import { accuracy, predictsNumbers, workersOf } from "./names";
import { JobProfile } from "./profile";
import { elapsedMs, epochsDone, epochsWanted, expectedMs, progress } from "./progress";
import { Results } from "./results";
import { Watch } from "./watch";

type Detail = Schemas["JobDetail"];

const tabs = ["overview", "workers", "profile", "logs", "bill", "results"] as const;
type Tab = (typeof tabs)[number];
// Of one's own program nobody knows what a step is.
const tabsOf = (job: Detail) => tabs.filter((name) => name !== "profile" || (job.runtime === "native" && job.started_ms > 0));

function JobFigures({ job }: { job: Detail }) {
  const now_ms = useMarketNow(job.started_ms > 0 && !hasEnded(job));
  const share = progress(job, now_ms);
  const epochs = epochsDone(job);
  const wanted = epochsWanted(job);
  const expected_ms = expectedMs(job);
  const isMeasured = job.runtime === "native" || job.loss !== null || job.test_accuracy !== null;
  if (!job.started_ms && !job.ended_ms)
    return (
      <Figures>
        <Figure label={words.columns.created} value={time(job.created_ms)} />
        <Figure label={words.figures.quoted} value={credits(job.quoted_microcredits)} unit={unit.value} />
        <Figure label={words.figures.held} value={credits(job.held_microcredits)} unit={unit.value} />
      </Figures>
    );
  return (
    <>
      {share !== null && !hasEnded(job) && <Bar share={share} label={words.progress(percent(share, 0))} />}
      <Figures>
        {isMeasured && <Figure label={words.figures.loss} value={job.loss === null ? number(null) : short(job.loss)} />}
        {isMeasured && <Figure label={predictsNumbers(job) ? words.figures.r2 : words.figures.accuracy} value={accuracy(job)} />}
        {epochs !== null && (
          <Figure label={words.figures.epochs} value={number(epochs, epochs < 100 ? 1 : 0)} note={wanted ? words.ofEpochs(number(wanted)) : undefined} />
        )}
        <Figure label={words.figures.time} value={duration(elapsedMs(job, now_ms))}
          note={!hasEnded(job) && expected_ms ? words.ofExpected(duration(expected_ms)) : undefined} />
        <Figure label={words.figures.spent} value={credits(job.spent_microcredits)} unit={unit.value} />
        {!hasEnded(job) && <Figure label={words.figures.held} value={credits(job.held_microcredits)} unit={unit.value} />}
      </Figures>
    </>
  );
}

// Points and lanes move with the events themselves; the market's own list is read again now and then, and when the
// job's state changes.
function useWatch(job: Detail): { watch: Watch; metrics: Schemas["Metrics"] | undefined } {
  const watch = useMemo(() => new Watch(job.id), [job.id]);
  const shown = metricsOf(job.id);
  const { data: metrics } = useResource(shown);
  useEffect(() => watch.start(), [watch]);
  useEffect(() => {
    if (metrics) watch.read(metrics);
  }, [watch, metrics]);
  useEffect(() => void shown.refresh(), [shown, job.state, job.worker_count]);
  return { watch, metrics };
}

function Overview({ job }: { job: Detail }) {
  const { watch, metrics } = useWatch(job);
  const told = watch.told.value;
  const points = useMemo(() => watch.points(), [watch, told]);
  const held = heldLeases(job.leases);
  const isLive = job.state === "running";
  const hasLanes = job.leases.length > 0 && (job.runtime === "native" || !!metrics?.workers.length);
  return (
    <>
      {(job.state === "pending" || job.state === "starting") && <Explain id={job.id} />}
      {job.state === "failed" && <Ending job={job} />}
      {(points.length > 0 || (isLive && job.runtime === "native")) && (
        <Card title={words.curve.title} class="curves">
          <Curve key={job.id} points={points} isOfNumbers={predictsNumbers(job)} />
        </Card>
      )}
      {hasLanes && (
        <Card title={isLive ? words.lanes.title : words.lanes.titleEnded}>
          {metrics?.policy_reason && <p class="faint">{metrics.policy_reason}</p>}
          {metrics ? <Lanes watch={watch} workers={metrics.workers} held={held} isLive={isLive} /> : <Skeleton lines={3} />}
        </Card>
      )}
      {job.leases.length > 0 && !hasLanes && points.length === 0 && (
        <Card title={words.curve.title}>
          <p class="faint">{words.own}</p>
        </Card>
      )}
    </>
  );
}

function Panel({ tab, job, query }: { tab: Tab; job: Detail; query: URLSearchParams }) {
  if (tab === "workers") return <Leases job={job} />;
  if (tab === "profile") return <JobProfile id={job.id} />;
  if (tab === "logs") return <Logs key={job.id} job={job} query={query} />;
  if (tab === "bill") return <JobBill id={job.id} />;
  if (tab === "results") return <Results job={job} />;
  return <Overview job={job} />;
}

interface JobPageProps {
  id: number;
  tab: string | undefined;
  query: URLSearchParams;
}

export function JobPage({ id, tab: asked, query }: JobPageProps) {
  const shown = jobOf(id);
  const { data: job, problem } = useResource(shown);
  // A change of state is shown at once, whatever else comes.
  useEffect(() => hear("state", (events) => events.some((event) => event.job === id) && void shown.refresh()), [id, shown]);
  const tab = tabs.find((name) => name === asked) ?? "overview";
  return (
    <article class="job" aria-label={job && words.job(job.name)}>
      <a class="back" href={link("jobs")}>
        <Icon name="back" size={16} /> {words.back}
      </a>
      <Head title={job ? <>{job.name} <State state={job.state} label={common.states[job.state]} /></> : words.title}>
        {job && <Actions job={job} />}
      </Head>
      <ProblemNote problem={problem} />
      {!job && !problem && <Skeleton lines={6} />}
      {job && (
        <>
          <section class="card" aria-label={words.job(job.name)}>
            <p class="faint">{[job.model, job.policy_in_force || job.policy, workersOf(job)].filter(Boolean).join(" · ")}</p>
            {job.reason && job.state !== "pending" && job.state !== "failed" && <Note>{job.reason}</Note>}
            <JobFigures job={job} />
          </section>
          <Tabs label={words.tabs.label} tabs={tabsOf(job).map((name) => ({ name, label: words.tabs[name] }))} selected={tab}
            onSelect={(name) => go(name === "overview" ? link("jobs", id) : link("jobs", id, name))}>
            <Panel tab={tab} job={job} query={query} />
          </Tabs>
        </>
      )}
    </article>
  );
}
