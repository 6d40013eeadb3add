// What was found in a log: the lines, and one of them among those around it. Which one stands in the address.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { number } from "../../core/format";
import { connection } from "../../core/live";
import { setQuery } from "../../core/router";
import { jobs as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ProblemNote, Skeleton } from "../../ui/parts";
import { LogSearch, readAround, type Around, type Found } from "./log_search";
import type { Place } from "./log_tail";

const TYPED_MS = 200; // who types on has not asked yet

function useSearch(place: Place, find: string): LogSearch | null {
  const [search, setSearch] = useState<LogSearch | null>(null);
  useEffect(() => {
    const timer = window.setTimeout(() => setSearch(new LogSearch(place, find)), search ? TYPED_MS : 0);
    return () => clearTimeout(timer);
  }, [place, find]);
  useEffect(() => search?.start(), [search]);
  const isLive = connection.value === "live";
  const wasAway = useRef(false);
  useEffect(() => {
    if (isLive && wasAway.current) void search?.search();
    wasAway.current = !isLive;
  }, [isLive, search]);
  return search;
}

// The text with what is sought marked.
function Marked({ text, find }: { text: string; find: string }) {
  const parts = [];
  const lower = text.toLowerCase();
  const sought = find.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(sought); at >= 0; at = lower.indexOf(sought, from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + sought.length)}</mark>);
    from = at + sought.length;
  }
  return <>{[...parts, text.slice(from)]}</>;
}

function Lines({ found, find }: { found: readonly Found[]; find: string }) {
  return (
    <ul class="log found" aria-label={words.logs.foundLabel}>
      {found.map(({ offset, text }) => (
        <li key={offset}>
          <button type="button" onClick={() => setQuery({ line: String(offset) })}>
            <Marked text={text} find={find} />
          </button>
        </li>
      ))}
    </ul>
  );
}

function AroundLine({ place, offset, find }: { place: Place; offset: number; find: string }) {
  const [shown, setShown] = useState<{ around: Around; offset: number } | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const at = useRef<HTMLSpanElement>(null);
  const holder = useRef<HTMLPreElement>(null);
  useEffect(() => {
    let isCurrent = true;
    readAround(place, offset).then(
      (around) => {
        if (!isCurrent) return;
        setShown({ around, offset });
        setProblem(null);
      },
      (failure: Error) => isCurrent && setProblem(failure),
    );
    return () => void (isCurrent = false);
  }, [place, offset]);
  useLayoutEffect(() => {
    if (holder.current && at.current)
      holder.current.scrollTop = at.current.offsetTop - holder.current.offsetTop - holder.current.clientHeight / 2;
  }, [shown]);
  if (problem) return <ProblemNote problem={problem} />;
  if (!shown) return <Skeleton lines={6} />;
  const { before, line, after } = shown.around;
  return (
    <pre ref={holder} class="log" tabIndex={0} aria-label={words.logs.label}>
      {before.map((text) => `${text}\n`).join("")}
      <span ref={at} class="hit" aria-current="true">
        <Marked text={line} find={find} />
      </span>
      {after.map((text) => `\n${text}`).join("")}
    </pre>
  );
}

interface StepsProps {
  search: LogSearch;
  at: number; // -1: none is chosen
}

function Steps({ search, at }: StepsProps) {
  const { found } = search;
  const last = found.length - 1;
  const to = (index: number) => setQuery({ line: String(found[index]!.offset) });
  const next = async () => {
    if (at === last && search.canFindMore) await search.more();
    if (found[at + 1]) to(at + 1);
  };
  const count = search.isMore ? words.logs.andMore(number(found.length)) : number(found.length);
  return (
    <div class="steps row" role="group" aria-label={words.logs.steps}>
      <span class="faint" aria-live="polite">
        {at >= 0 ? words.logs.nth(number(at + 1), count) : words.logs.found(count, found.length === 1 && !search.isMore)}
        {search.isSearching && ` · ${words.logs.searching}`}
      </span>
      <span class="grow" />
      {at >= 0 && <Button onClick={() => setQuery({ line: undefined })}>{words.logs.allFound}</Button>}
      <Button icon="up" label={words.logs.previous} isDisabled={at <= 0} onClick={() => to(at - 1)} />
      <Button icon="down" label={words.logs.next} isDisabled={at >= last && !search.canFindMore} onClick={next} />
    </div>
  );
}

export function FoundLines({ place, find, line }: { place: Place; find: string; line: string | null }) {
  const search = useSearch(place, find);
  const told = search?.told.value;
  const offset = line === null ? -1 : Number(line);
  const at = useMemo(() => search?.found.findIndex((each) => each.offset === offset) ?? -1, [search, told, offset]);
  if (!search || (search.isSearching && !search.found.length)) return <Skeleton lines={6} />;
  return (
    <>
      <ProblemNote problem={search.problem} />
      <Steps search={search} at={at} />
      {at >= 0 ? (
        <AroundLine place={place} offset={offset} find={search.find} />
      ) : search.found.length ? (
        <Lines found={search.found} find={search.find} />
      ) : (
        <pre class="log" tabIndex={0} aria-label={words.logs.label}>{words.logs.noneFound(search.find)}</pre>
      )}
      {at < 0 && search.isMore && (
        <p class="more">
          {search.canFindMore ? <Button onClick={() => search.more()}>{words.logs.findMore}</Button> : <span class="faint">{words.logs.tooMany}</span>}
        </p>
      )}
    </>
  );
}
