// A lane per worker: how much of its time it computes, stands still for transfers, and waits for others.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, number, percent } from "../../core/format";
import { colour, isDark } from "../../core/theme";
import { jobs as words } from "../../text/en";
import { byRole, roleName } from "./names";
import { sharesOf, SLOT_MS, STRIP_SLOTS, type Lane, type Reported, type Shares, type Watch } from "./watch";

interface Colours {
  compute: string;
  transfer: string;
  wait: string;
}

const PALE = 0.45;

function column(canvas: CanvasRenderingContext2D, colours: Colours, shares: Shares, x: number, width: number): void {
  const { height } = canvas.canvas;
  const computes = Math.round(shares.compute * height);
  const transfers = Math.round(shares.transfer * height);
  canvas.fillStyle = colours.wait;
  canvas.fillRect(x, 0, width, height - computes - transfers);
  canvas.fillStyle = colours.transfer;
  canvas.fillRect(x, height - computes - transfers, width, transfers);
  canvas.fillStyle = colours.compute;
  canvas.fillRect(x, height - computes, width, computes);
}

// One column a second, the newest at the right.
function draw(element: HTMLCanvasElement, lane: Lane, newest: number, colours: Colours, isLive: boolean): void {
  const ratio = devicePixelRatio;
  const width = Math.round(element.clientWidth * ratio);
  const height = Math.round(element.clientHeight * ratio);
  if (element.width !== width || element.height !== height) Object.assign(element, { width, height });
  const canvas = element.getContext("2d");
  if (!canvas || !width) return;
  canvas.clearRect(0, 0, width, height);
  const mean = isLive ? lane.before : sharesOf(lane.last);
  let first = STRIP_SLOTS; // columns before the first that was seen
  for (let back = 0; back < STRIP_SLOTS; back++) {
    const slot = newest - back;
    const place = ((slot % STRIP_SLOTS) + STRIP_SLOTS) % STRIP_SLOTS;
    if (!isLive || lane.slots[place] !== slot) continue;
    const at = STRIP_SLOTS - 1 - back;
    first = at;
    const left = Math.floor((at * width) / STRIP_SLOTS);
    const right = Math.floor(((at + 1) * width) / STRIP_SLOTS);
    const compute = lane.compute[place]!;
    const transfer = lane.transfer[place]!;
    column(canvas, colours, { compute, transfer, wait: 1 - compute - transfer }, left, right - left);
  }
  if (!mean || first === 0) return;
  canvas.globalAlpha = isLive ? PALE : 1;
  column(canvas, colours, mean, 0, Math.floor((first * width) / STRIP_SLOTS));
  canvas.globalAlpha = 1;
}

const NEAR = "1000px";

// Whether it is on the screen or near it: of a thousand lanes only those are drawn.
function useSight(element: { current: HTMLElement | null }): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver((entries) => setSeen(entries.at(-1)!.isIntersecting), { rootMargin: NEAR });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return isSeen;
}

interface RowProps {
  worker: Reported;
  lane: Lane | undefined;
  held: string | undefined;
  newest: number;
  told: number; // redrawn when this moves
  colours: Colours;
  isLive: boolean;
}

function Row({ worker, lane, held, newest, told, colours, isLive }: RowProps) {
  const strip = useRef<HTMLCanvasElement>(null);
  const mean = lane ? sharesOf(lane.last) : null;
  const isSeen = useSight(strip);
  useEffect(() => {
    if (isSeen && strip.current && lane) draw(strip.current, lane, newest, colours, isLive);
  }, [told, colours, isLive, lane, isSeen]);
  const isServer = worker.role === "server";
  const told_shares = mean ? words.lanes.told(percent(mean.compute, 0), percent(mean.transfer, 0), percent(mean.wait, 0)) : words.lanes.nothing;
  return (
    <tr>
      <th scope="row">
        {worker.machine_name}
        <small class="faint">
          {roleName(worker)}
          {held && ` · ${words.heldBy[held]}`}
        </small>
      </th>
      <td class="wide">
        {isServer ? (
          <span class="faint">{worker.replica ? words.lanes.follows : words.lanes.serves}</span>
        ) : (
          <canvas ref={strip} class="strip" role="img" aria-label={told_shares} />
        )}
      </td>
      <td class="right">{isServer ? "" : percent(mean?.compute, 0)}</td>
      <td class="right wide-only">{isServer ? "" : percent(mean?.transfer, 0)}</td>
      <td class="right wide-only">{isServer ? "" : percent(mean?.wait, 0)}</td>
      <td class="right wide-only">{isServer || !isLive ? "" : number(lane?.steps_per_second, 0)}</td>
      <td class="right wide-only">{isServer ? "" : percent(worker.share, 0)}</td>
      <td class="right wide-only">{number(lane?.commits ?? worker.commits)}</td>
      <td class="right faint wide-only">{worker.codec}</td>
    </tr>
  );
}

function Legend({ isLive }: { isLive: boolean }) {
  const kinds = [
    ["compute", words.lanes.compute, words.lanes.computeHint],
    ["transfer", words.lanes.transfer, words.lanes.transferHint],
    ["wait", words.lanes.wait, words.lanes.waitHint],
  ] as const;
  return (
    <p class="legend faint">
      {kinds.map(([kind, word, hint]) => (
        <span key={kind}>
          <i class={kind} aria-hidden="true" /> {word}: {hint}
        </span>
      ))}
      <span>{isLive ? words.lanes.window(duration(STRIP_SLOTS * SLOT_MS)) : words.lanes.whole}</span>
    </p>
  );
}

interface LanesProps {
  watch: Watch;
  workers: readonly Reported[];
  held: ReadonlyMap<number, string>; // by lease
  isLive: boolean;
}

export function Lanes({ watch, workers, held, isLive }: LanesProps) {
  const told = watch.told.value;
  const dark = isDark.value;
  const colours = useMemo(() => ({ compute: colour("--accent"), transfer: colour("--blue"), wait: colour("--edge") }), [dark]);
  const rows = useMemo(() => [...workers].sort(byRole), [workers]);
  if (!rows.length) return <p class="faint">{words.lanes.none}</p>;
  const { lanes } = words;
  return (
    <>
      <div class="scroll" tabIndex={0} role="group" aria-label={lanes.titleEnded}>
        <table class="lanes" aria-label={lanes.titleEnded}>
          <thead>
            <tr>
              <th scope="col">{lanes.machine}</th>
              <th scope="col" class="wide">{lanes.strip}</th>
              <th scope="col" class="right">{lanes.compute}</th>
              <th scope="col" class="right wide-only">{lanes.transfer}</th>
              <th scope="col" class="right wide-only">{lanes.wait}</th>
              <th scope="col" class="right wide-only">{lanes.speed}</th>
              <th scope="col" class="right wide-only">{lanes.share}</th>
              <th scope="col" class="right wide-only">{lanes.commits}</th>
              <th scope="col" class="right wide-only">{lanes.codec}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((worker) => (
              <Row key={worker.lease} worker={worker} lane={watch.lanes.get(worker.lease)} held={held.get(worker.lease)}
                newest={watch.slot} told={told} colours={colours} isLive={isLive} />
            ))}
          </tbody>
        </table>
      </div>
      <Legend isLive={isLive} />
    </>
  );
}
