// The account's jobs: the chosen one, or else the newest, and the list.
import { credits, time } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { jobs, type Job } from "../../core/store";
import { common, jobs as words } from "../../text/en";
import { Copy } from "../../ui/copy";
import { Card, Empty, Head, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import type { ScreenProps } from "..";
import { accuracy, JobDetail, predictsNumbers } from "./job";

const columns: readonly Column<Job>[] = [
  { name: "name", head: words.columns.name, isRowHead: true, sort: (job) => job.name,
    cell: (job) => <a href={link("jobs", job.id)}>{job.name}</a> },
  { name: "state", head: words.columns.state, sort: (job) => job.state,
    cell: (job) => <State state={job.state} label={common.states[job.state]} /> },
  { name: "created", head: words.columns.created, isWideOnly: true, sort: (job) => job.created_ms,
    cell: (job) => time(job.created_ms) },
  { name: "accuracy", head: words.columns.accuracy, isRight: true, sort: (job) => job.test_accuracy ?? -Infinity,
    cell: (job) => `${predictsNumbers(job) && job.test_accuracy !== null ? "R² " : ""}${accuracy(job)}` },
  { name: "spent", head: words.columns.spent, isRight: true, sort: (job) => job.spent_microcredits,
    cell: (job) => credits(job.spent_microcredits) },
];

export default function Jobs({ rest }: ScreenProps) {
  const { data, problem } = useResource(jobs);
  const asked = Number(rest[0]);
  const chosen = Number.isInteger(asked) && asked > 0 ? asked : data?.items[0]?.id;
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton lines={6} />}
      {data?.items.length === 0 && (
        <Card>
          <Empty icon="jobs" title={words.none}>
            <p class="faint">{words.noneHint}</p>
            <Copy text={words.submitCommand} label={words.command} />
          </Empty>
        </Card>
      )}
      {chosen !== undefined && <JobDetail key={chosen} id={chosen} />}
      {data && data.items.length > 1 && (
        <Card title={words.table}>
          <Table label={words.table} columns={columns} rows={data.items} rowKey={(job) => job.id}
            isSelected={(job) => job.id === chosen} />
        </Card>
      )}
    </>
  );
}
