// The live curve of a job: loss on the left axis, test accuracy on the right; of one that predicts numbers R².
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { CurvePoint } from "./api";

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// At most three digits that count: 5e-6, 0.0012, 0.35, 98.5, 100.
function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(1).replace(".0e", "e");
  return String(Number(value.toPrecision(3)));
}

function options(width: number, isOfNumbers: boolean): uPlot.Options {
  const least = isOfNumbers ? -Infinity : 0;
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 } };
  return {
    width,
    height: 260,
    legend: { show: true, live: true },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { time: false }, loss: {}, accuracy: { range: (_plot, low, high) => [Math.max(least, low - 0.02), Math.min(1, high + 0.02)] } },
    series: [
      { label: "seconds" },
      { label: "loss", scale: "loss", stroke: colour("--accent"), width: 2, spanGaps: true,
        value: (_plot, value) => (value === null ? "–" : value.toFixed(4)) },
      { label: isOfNumbers ? "test R²" : "test accuracy", scale: "accuracy", stroke: colour("--good"), width: 2, spanGaps: true,
        value: (_plot, value) => (value === null ? "–" : isOfNumbers ? value.toFixed(4) : `${(value * 100).toFixed(2)} %`) },
    ],
    axes: [
      { ...axis, values: (_plot, ticks) => ticks.map((tick) => `${short(tick)} s`) },
      { ...axis, scale: "loss", size: 60, values: (_plot, ticks) => ticks.map(short) },
      { ...axis, scale: "accuracy", side: 1, grid: { show: false }, size: 56,
        values: (_plot, ticks) => ticks.map((tick) => (isOfNumbers ? short(tick) : `${short(tick * 100)} %`)) },
    ],
  };
}

function columns(curve: CurvePoint[]): uPlot.AlignedData {
  return [
    curve.map((point) => point.elapsed_ms / 1000),
    curve.map((point) => point.loss),
    curve.map((point) => point.test_accuracy),
  ];
}

export function Curve({ curve, isOfNumbers }: { curve: CurvePoint[]; isOfNumbers: boolean }) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);

  useEffect(() => {
    const element = holder.current!;
    plot.current = new uPlot(options(element.clientWidth || 320, isOfNumbers), columns(curve), element);
    const resize = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: 260 });
    });
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(columns(curve)), [curve]);

  const last = curve[curve.length - 1];
  const words = last
    ? `loss ${last.loss?.toFixed(3) ?? "unknown"} after ${Math.round(last.elapsed_ms / 1000)} seconds`
    : "no points yet";
  return <div ref={holder} class="curve" role="img" aria-label={`Loss curve: ${words}`} />;
}
