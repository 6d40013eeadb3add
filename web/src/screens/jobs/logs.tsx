// What the job's processes print: one at a time, followed while it is printed, searched, taken along.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { number } from "../../core/format";
import { connection } from "../../core/live";
import { setQuery } from "../../core/router";
import { jobs as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select, Toggle } from "../../ui/field";
import { Card, ProblemNote, Skeleton } from "../../ui/parts";
import { save } from "../../ui/save";
import { FoundLines } from "./log_found";
import { LogTail, wholeLog, type Place } from "./log_tail";
import { byRole, logName, roleName } from "./names";

type Lease = Schemas["Lease"];

function choicesOf(leases: readonly Lease[]): { value: string; label: string; lease: number }[] {
  return [...leases]
    .sort((a, b) => byRole(a, b) || b.id - a.id)
    .map((lease) => {
      const value = logName(leases, lease);
      const who = words.logs.on(roleName(lease), lease.machine_name);
      return { value, label: value === `lease ${lease.id}` ? words.logs.earlier(who, lease.id) : who, lease: lease.id };
    });
}

function useTail(place: Place): LogTail {
  const tail = useMemo(() => new LogTail(place), [place]);
  useEffect(() => tail.start(), [tail]);
  const isLive = connection.value === "live";
  const wasAway = useRef(false);
  useEffect(() => {
    if (isLive && wasAway.current) void tail.read();
    wasAway.current = !isLive;
  }, [isLive, tail]);
  return tail;
}

function LastLines({ place, isFollowing }: { place: Place; isFollowing: boolean }) {
  const tail = useTail(place);
  const told = tail.told.value;
  const holder = useRef<HTMLPreElement>(null);
  const lines = useMemo(() => (tail.lines.at(-1) === "" ? tail.lines.slice(0, -1) : [...tail.lines]), [told, tail]);
  useLayoutEffect(() => {
    if (isFollowing && holder.current) holder.current.scrollTop = holder.current.scrollHeight;
  }, [lines, isFollowing]);
  if (!tail.isRead) return <Skeleton lines={6} />;
  return (
    <>
      <ProblemNote problem={tail.problem} />
      <pre ref={holder} class="log" tabIndex={0} aria-label={words.logs.label}>
        {lines.length ? lines.join("\n") : words.logs.none}
      </pre>
      <p class="faint">
        {words.logs.lines(number(lines.length))}
        {tail.isCut && ` · ${words.logs.cut}`}
      </p>
    </>
  );
}

export function Logs({ job, query }: { job: Schemas["JobDetail"]; query: URLSearchParams }) {
  const choices = useMemo(() => choicesOf(job.leases), [job.leases]);
  const asked = query.get("rank") ?? "";
  const chosen = choices.find((choice) => choice.value === asked) ?? choices.find((choice) => choice.value === "0") ?? choices[0];
  const [isFollowing, setFollowing] = useState(true);
  const find = query.get("find") ?? "";
  const lease = chosen?.lease ?? 0;
  const place = useMemo(() => ({ job: job.id, lease }), [job.id, lease]);
  if (!chosen)
    return (
      <Card title={words.logs.title}>
        <p class="faint">{words.logs.noLease}</p>
      </Card>
    );
  const download = async () => save(new Blob(await wholeLog(place), { type: "text/plain" }), `job-${job.id}-${chosen.value.replace(" ", "-")}.log`);
  return (
    <Card title={words.logs.title} action={<Button icon="download" onClick={download}>{words.logs.download}</Button>} class="logs">
      <div class="choose">
        <Select label={words.logs.whose} value={chosen.value} choices={choices} onValue={(rank) => setQuery({ rank, line: undefined })} />
        <Field label={words.logs.search} value={find} onValue={(text) => setQuery({ find: text || undefined, line: undefined })}
          native={{ type: "search", maxLength: 200, name: "find", placeholder: words.logs.searchHint }} />
        <Toggle label={words.logs.follow} isOn={isFollowing} onValue={setFollowing} />
      </div>
      {find ? (
        <FoundLines place={place} find={find} line={query.get("line")} />
      ) : (
        <LastLines place={place} isFollowing={isFollowing} />
      )}
    </Card>
  );
}
