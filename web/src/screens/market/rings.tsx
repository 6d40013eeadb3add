// How far machines are from the market: rings of round-trip time, each ring three times as far as the one before.
import { useMemo } from "preact/hooks";
import type { Machine } from "../../core/store";
import { market as words } from "../../text/en";
import { Card } from "../../ui/parts";

const RINGS_MS = [1, 3, 10, 30, 100, 300, 1000];
const SIZE = 400;
const MIDDLE = SIZE / 2;
const INNER = 26; // of the first ring
const OUTER = MIDDLE - 12;
const GOLDEN = Math.PI * (3 - Math.sqrt(5)); // turns from dot to dot: none hides another for long
const DOTS_MAX = 600; // more are drawn as one dot for several, spread as they are

const step = (OUTER - INNER) / (RINGS_MS.length - 1);
const ringOf = (rtt_ms: number) => RINGS_MS.findIndex((most) => rtt_ms <= most);

function radius(rtt_ms: number): number {
  if (rtt_ms <= RINGS_MS[0]!) return INNER * Math.max(0.45, rtt_ms / RINGS_MS[0]!);
  return Math.min(OUTER, INNER + (step * Math.log(rtt_ms)) / Math.log(3.1623));
}

interface Dot {
  id: number;
  x: number;
  y: number;
  isMine: boolean;
  name: string;
}

function dotsOf(measured: readonly Machine[]): Dot[] {
  const every = Math.max(1, Math.ceil(measured.length / DOTS_MAX));
  return measured
    .filter((machine, index) => machine.is_mine || index % every === 0)
    .slice(0, DOTS_MAX)
    .map((machine, index) => {
      const far = radius(machine.probe.rtt_us! / 1000);
      return {
        id: machine.id, isMine: machine.is_mine, name: machine.name,
        x: MIDDLE + far * Math.cos(index * GOLDEN), y: MIDDLE + far * Math.sin(index * GOLDEN),
      };
    });
}

export function Rings({ machines }: { machines: readonly Machine[] }) {
  const { dots, counts, unknown } = useMemo(() => {
    const measured = machines.filter((machine) => machine.probe.rtt_us).sort((a, b) => a.probe.rtt_us! - b.probe.rtt_us!);
    const found = RINGS_MS.map(() => 0);
    for (const machine of measured) {
      const ring = ringOf(machine.probe.rtt_us! / 1000);
      found[ring < 0 ? RINGS_MS.length - 1 : ring]!++;
    }
    return { dots: dotsOf(measured), counts: found, unknown: machines.length - measured.length };
  }, [machines]);
  const rings = RINGS_MS.map((most, index) => ({ most, index, count: counts[index]! }));
  return (
    <Card title={words.rings.title} class="rings">
      <p class="faint">{words.rings.hint}</p>
      <div class="rings-body">
        <svg viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label={words.rings.label(rings.map(({ most, count }) => words.rings.within(most, count)).join(", "))}>
          {RINGS_MS.map((most, index) => (
            <circle key={most} class="ring" cx={MIDDLE} cy={MIDDLE} r={INNER + index * step} />
          ))}
          {dots.map((dot) => (
            <circle key={dot.id} class={dot.isMine ? "dot mine" : "dot"} cx={dot.x} cy={dot.y} r={dots.length > 150 ? 2.5 : 5}>
              <title>{dot.name}</title>
            </circle>
          ))}
          {RINGS_MS.map((most, index) => (
            <text key={most} x={MIDDLE} y={MIDDLE - INNER - index * step + 4}>{words.rings.mark(most)}</text>
          ))}
          <circle class="centre" cx={MIDDLE} cy={MIDDLE} r="4" />
        </svg>
        <ul>
          {rings.map(({ most, count }) => (
            <li key={most} class={count ? undefined : "faint"}>
              <span>{words.rings.upTo(most)}</span>
              <strong>{count}</strong>
            </li>
          ))}
          {unknown > 0 && (
            <li class="faint">
              <span>{words.rings.unknown}</span>
              <strong>{unknown}</strong>
            </li>
          )}
        </ul>
      </div>
      <p class="faint legend"><span class="key mine" /> {words.rings.mine} <span class="key" /> {words.rings.others}</p>
    </Card>
  );
}
