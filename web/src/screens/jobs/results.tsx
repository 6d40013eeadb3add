// What a job left: its files, and how to serve the model.
import { get, type Schemas } from "../../api/client";
import { bytes, time } from "../../core/format";
import { resourceOf, useResource } from "../../core/resource";
import { hasEnded, type Job } from "../../core/store";
import { jobs as words } from "../../text/en";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { Card, ProblemNote, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";

type Artifact = Schemas["Artifact"];

const artifactsOf = resourceOf((id: number) => get("/v1/jobs/{id}/artifacts", { path: { id } }), ["jobs"], { every_ms: 2000 });
const MODEL = "model.safetensors";
const SERVED = "http://127.0.0.1:8501"; // where souk model serve listens

const addressOf = (job: number, name: string) => `/v1/jobs/${job}/artifacts/${encodeURIComponent(name)}`;

const columnsOf = (job: number): readonly Column<Artifact>[] => [
  {
    name: "name", head: words.results.name, isRowHead: true,
    cell: (file) => (
      <>
        <a href={addressOf(job, file.name)} download>{file.name}</a>
        {words.results.names[file.name] && <small class="faint reason">{words.results.names[file.name]}</small>}
      </>
    ),
  },
  { name: "size", head: words.results.size, isRight: true, cell: (file) => bytes(file.size) },
  { name: "made", head: words.results.made, isRight: true, isWideOnly: true, cell: (file) => time(file.created_ms) },
];

export function ModelLink({ id }: { id: number }) {
  return (
    <a class="button plain" href={addressOf(id, MODEL)} download>
      <Icon name="download" size={18} /> {words.results.model}
    </a>
  );
}

/* Made when they are asked for, so they are no files that the job left. */
function TakeAlong({ job }: { job: Job }) {
  return (
    <Card title={words.results.take}>
      <ul class="take">
        {job.runtime === "native" && (
          <li>
            <a href={`/v1/jobs/${job.id}/tensorboard`} download>{words.results.tensorboard}</a>
            <small class="faint reason">{words.results.tensorboardHint}</small>
          </li>
        )}
        <li>
          <a href={`/v1/jobs/${job.id}/file`} download>{words.results.file}</a>
          <small class="faint reason">{words.results.fileHint}</small>
        </li>
      </ul>
    </Card>
  );
}

export function Results({ job }: { job: Job }) {
  const { data, problem } = useResource(artifactsOf(job.id));
  const files = data?.items ?? [];
  const folder = `job-${job.id}`;
  return (
    <>
      <Card title={words.results.title}>
        <ProblemNote problem={problem} />
        {!data && !problem && <Skeleton lines={3} />}
        {data && files.length === 0 && <p class="faint">{hasEnded(job) ? words.results.noneEnded : words.results.none}</p>}
        {files.length > 0 && <Table label={words.results.title} columns={columnsOf(job.id)} rows={files} rowKey={(file) => file.name} />}
      </Card>
      <TakeAlong job={job} />
      {files.some((file) => file.name === MODEL) && (
        <Card title={words.results.serve}>
          <p class="faint">{words.results.serveHint}</p>
          <Copy text={`souk job fetch ${job.id} -o ${folder} && souk model serve ${folder}/${MODEL} --name ${folder}`} label={words.command} />
          <p class="faint">{words.results.askHint}</p>
          <Copy text={`curl ${SERVED}/v1/models/${folder}/metadata`} label={words.command} />
          <p class="faint">{words.results.predictHint}</p>
          <Copy text={`curl -d '{"instances": [INPUT]}' ${SERVED}/v1/models/${folder}:predict`} label={words.command} />
        </Card>
      )}
    </>
  );
}
