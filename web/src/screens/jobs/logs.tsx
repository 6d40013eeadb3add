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
    if (isLive && wasAway.current && tail.isAtEnd) void tail.later();
    wasAway.current = !isLive;
  }, [isLive, tail]);
  return tail;
}

interface Following {
  isFollowing: boolean;
  setFollowing: (isFollowing: boolean) => void;
}

const NEAR = 400; // pixels from an end of what is shown: more is read before one is there

// The piece that is at the upper edge, and where: what comes or goes above it does not move it.
function anchorOf(holder: HTMLElement): { piece: HTMLElement; top: number } | null {
  const pieces = [...holder.children] as HTMLElement[];
  const piece = pieces.reverse().find(({ offsetTop }) => offsetTop <= holder.scrollTop + holder.offsetTop) ?? pieces.at(-1);
  return piece ? { piece, top: piece.offsetTop } : null;
}

// Reads on in the direction one scrolls to; who scrolls up does not follow any more.
function useScrolling(tail: LogTail, { isFollowing, setFollowing }: Following) {
  const holder = useRef<HTMLPreElement>(null);
  const lastTop = useRef(0);
  const before = holder.current && anchorOf(holder.current);
  tail.isHeld = !isFollowing;
  useLayoutEffect(() => {
    const box = holder.current;
    if (!box) return;
    if (isFollowing && tail.isAtEnd) box.scrollTop = box.scrollHeight;
    else if (before?.piece.isConnected) box.scrollTop += before.piece.offsetTop - before.top;
    lastTop.current = box.scrollTop;
    if (box.scrollHeight <= box.clientHeight && tail.first > 0 && !tail.problem) void tail.earlier();
  }, [tail.pieces, isFollowing]);
  useEffect(() => {
    if (isFollowing && tail.isRead && !tail.isAtEnd) void tail.toEnd();
  }, [isFollowing, tail]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = holder.current!;
    const isUp = scrollTop < lastTop.current;
    const left = scrollHeight - clientHeight - scrollTop;
    lastTop.current = scrollTop;
    if (isUp && left > 2) setFollowing(false);
    if (isUp && scrollTop < NEAR) void tail.earlier();
    if (!isUp && left < NEAR && !tail.isAtEnd) void tail.later();
  };
  return { holder, onScroll };
}

function LastLines({ place, ...following }: { place: Place } & Following) {
  const tail = useTail(place);
  tail.told.value; // it is told when there is more
  const { holder, onScroll } = useScrolling(tail, following);
  if (!tail.isRead) return <Skeleton lines={6} />;
  const { pieces } = tail;
  return (
    <>
      <ProblemNote problem={tail.problem} />
      <pre ref={holder} class="log" tabIndex={0} aria-label={words.logs.label} onScroll={onScroll}>
        {pieces.length ? pieces.map(({ offset, text }) => <span key={offset}>{text}</span>) : words.logs.none}
      </pre>
      <p class="row faint">
        <span>{words.logs.lines(number(tail.lineCount))}</span>
        {tail.first > 0 && <Button kind="link" onClick={() => { following.setFollowing(false); return tail.earlier(); }}>{words.logs.before}</Button>}
        {!tail.isAtEnd && <Button kind="link" onClick={() => following.setFollowing(true)}>{words.logs.toEnd}</Button>}
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
        <LastLines place={place} isFollowing={isFollowing} setFollowing={setFollowing} />
      )}
    </Card>
  );
}
