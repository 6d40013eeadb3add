// How the market's own program is: whether it takes changes, and what it has and uses.
import { metricsOf, readPlain } from "../../api/plain";
import { Problem } from "../../api/problem";
import { marketNow } from "../../core/clock";
import { useAgain } from "../../core/fresh";
import { bytes, duration, number } from "../../core/format";
import { resource } from "../../core/resource";
import { operator as words } from "../../text/en";
import { Card, Figure, Figures, Note, ProblemNote, Skeleton, State } from "../../ui/parts";

interface Service {
  refusal: string; // why no changes are taken; "": they are
  metrics: ReadonlyMap<string, number>;
}

const AGAIN_MS = 5000;
const DISK_LOW_BYTES = 1 << 30;

async function read(): Promise<Service> {
  const refused = readPlain("/readyz").then(() => "", (failure: unknown) => {
    if (failure instanceof Problem) return failure.detail;
    throw failure;
  });
  const [refusal, text] = await Promise.all([refused, readPlain("/metrics")]);
  return { refusal, metrics: metricsOf(text) };
}

const service = resource(read, []);

function Gauges({ metrics }: { metrics: Service["metrics"] }) {
  const of = (name: string) => metrics.get(name) ?? 0;
  const commit_ms = of("commits_total") ? (of("commit_seconds_total") / of("commits_total")) * 1000 : 0;
  const errors = of("http_server_errors_total");
  return (
    <>
      {of("disk_free_bytes") < DISK_LOW_BYTES && <Note tone="warn">{words.diskLow(bytes(of("disk_free_bytes")))}</Note>}
      {of("failed_commits_total") > 0 && <Note tone="warn">{words.failedCommits(number(of("failed_commits_total")))}</Note>}
      <Figures>
        <Figure label={words.uptime} value={duration(marketNow() - of("start_time_seconds") * 1000)} />
        <Figure label={words.eventLog} value={number(of("event_sequence"))} note={words.eventsSince(number(of("events_total")))} />
        <Figure label={words.store} value={bytes(of("store_bytes"))} note={words.diskFree(bytes(of("disk_free_bytes")))} />
        <Figure label={words.blobs} value={bytes(of("blob_bytes"))} note={words.blobsNote} />
        <Figure label={words.memory} value={bytes(of("resident_bytes"))} />
        <Figure label={words.links} value={number(of("machine_links"))} note={words.relayed(number(of("streams")))} />
        <Figure label={words.queue} value={number(of("command_queue"))} note={words.commitTime(number(commit_ms, 1))} />
        <Figure label={words.requests} value={number(of("http_requests_total"))}
          note={words.requestErrors(number(errors), number(of("http_rate_limited_total")))} />
      </Figures>
    </>
  );
}

export function ServiceCard() {
  const { data, problem } = useAgain(service, AGAIN_MS);
  const isReady = data?.refusal === "";
  return (
    <Card title={words.health} class="service"
      action={data && <State state={isReady ? "online" : "failed"} label={isReady ? words.ready : words.notReady} />}>
      <ProblemNote problem={problem} />
      {data?.refusal && <Note tone="bad">{data.refusal}</Note>}
      {!data && !problem && <Skeleton />}
      {data && <Gauges metrics={data.metrics} />}
    </Card>
  );
}
