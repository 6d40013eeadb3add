// The live curves of a job: loss on the left axis and test accuracy on the right, of one that predicts numbers R²;
// below them how many samples a second all workers train on.
import { useMemo } from "preact/hooks";
import { number, percent, short } from "../../core/format";
import { jobs as words } from "../../text/en";
import { Chart } from "../../ui/chart";
import type { Point } from "./watch";

const RATE_SPAN_MS = 2000; // shorter ones would show when reports come, not how fast it is

interface CurveProps {
  points: readonly Point[];
  isOfNumbers: boolean;
}

function rates(points: readonly Point[]): (number | null)[] {
  let from = 0;
  return points.map((point) => {
    while (from + 1 < points.length && points[from + 1]!.elapsed_ms <= point.elapsed_ms - RATE_SPAN_MS) from++;
    const first = points[from]!;
    const span_ms = point.elapsed_ms - first.elapsed_ms;
    return span_ms > 0 ? Math.max(0, ((point.samples - first.samples) * 1000) / span_ms) : null;
  });
}

// 45 s, 2:30, 1:05:00: ticks of one axis look alike however long the job runs.
function clock(seconds: number): string {
  if (seconds < 60) return `${short(seconds)} s`;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}:${two(seconds % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

const x = { label: words.curve.seconds, values: clock };

export function Curve({ points, isOfNumbers }: CurveProps) {
  const elapsed = useMemo(() => points.map((point) => point.elapsed_ms / 1000), [points]);
  const learned = useMemo(
    () => [elapsed, points.map((point) => point.loss), points.map((point) => point.test_accuracy)],
    [points],
  );
  const throughput = useMemo(() => [elapsed, rates(points)], [points]);
  const last = points.at(-1);
  if (!last) return <p class="faint">{words.curve.empty}</p>;
  const seconds = Math.round(last.elapsed_ms / 1000);
  const rate = throughput[1]?.at(-1);
  const least = isOfNumbers ? -Infinity : 0;
  return (
    <>
      <Chart
        label={words.curve.label(last.loss !== null ? short(last.loss) : words.curve.unknown, seconds)}
        x={x}
        series={[
          { label: words.figures.loss, token: "--accent", scale: "loss", value: (value) => number(value, 4) },
          {
            label: isOfNumbers ? words.figures.r2 : words.figures.accuracy, token: "--good", scale: "accuracy",
            value: (value) => (isOfNumbers ? number(value, 4) : percent(value, 2)),
          },
        ]}
        axes={[
          { scale: "loss", values: short },
          {
            scale: "accuracy", side: "right", values: (value) => (isOfNumbers ? short(value) : `${short(value * 100)} %`),
            range: (low, high) => [Math.max(least, low - 0.02), Math.min(1, high + 0.02)],
          },
        ]}
        data={learned}
      />
      <div class="throughput">
        <Chart
          label={words.curve.throughputLabel(number(rate), seconds)}
          x={x}
          series={[{ label: words.curve.throughput, token: "--blue", scale: "rate", fill: true, value: (value) => number(value) }]}
          axes={[{ scale: "rate", values: (value) => compact.format(value), range: (_low, high) => [0, Math.max(1, high * 1.1)] }]}
          data={throughput}
          height={150}
        />
      </div>
    </>
  );
}

const compact = new Intl.NumberFormat(undefined, { notation: "compact" });
