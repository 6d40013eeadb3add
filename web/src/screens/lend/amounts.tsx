// How much of the machine is lent: sliders from nothing to all that it has.
import { lend as words } from "../../text/en";
import { Slider } from "../../ui/field";
import type { PartProps } from "./offer";
import type { Probe } from "./terms";

const GIB = 2 ** 30;
const MILLI_STEPS = [1000, 500, 250, 100, 50, 10, 1];
const STEPS_MIN = 8;

// The coarsest step that reaches all of it and leaves a choice.
const milliStep = (all_milli: number) =>
  MILLI_STEPS.find((step) => all_milli % step === 0 && all_milli / step >= STEPS_MIN) ?? 1;

// In GiB, to a tenth below 32 and whole above; the end of the slider is all there is, to the byte.
const gibStep = (all: number) => (all >= 32 * GIB ? 1 : all >= GIB ? 0.1 : 0.01);
function gib(size: number, all: number): number {
  const step = gibStep(all);
  return Number((Math.floor(size / GIB / step) * step).toFixed(2));
}
const sizeOf = (value: number, all: number) => (value >= gib(all, all) ? all : Math.round(value * GIB));

export function Amounts({ terms, change, probe }: PartProps & { probe: Probe }) {
  const text = words.amounts;
  const step = milliStep(probe.cores_milli);
  const gpus_milli = probe.gpus_milli ?? 0;
  const size = (name: "ram_bytes" | "disk_bytes", all: number, min: number) => (
    <Slider label={text[name]} value={gib(terms[name], all)} min={min} max={gib(all, all)} step={gibStep(all)} unit={text.gib(gib(all, all))}
      onValue={(value) => change({ [name]: sizeOf(value, all) })} />
  );
  return (
    <>
      <Slider label={text.cores} value={terms.cores_milli / 1000} min={step / 1000} max={probe.cores_milli / 1000} step={step / 1000}
        unit={text.of(probe.cores_milli / 1000)} hint={probe.cpu_model} onValue={(value) => change({ cores_milli: Math.round(value * 1000) })} />
      {size("ram_bytes", probe.ram_bytes, gibStep(probe.ram_bytes))}
      {size("disk_bytes", probe.disk_bytes, 0)}
      {gpus_milli > 0 && (
        <Slider label={text.gpus} value={terms.gpus_milli / 1000} min={0} max={gpus_milli / 1000} step={gpus_milli % 1000 ? 0.1 : 1}
          unit={text.of(gpus_milli / 1000)} hint={probe.gpu_model} onValue={(value) => change({ gpus_milli: Math.round(value * 1000) })} />
      )}
      <p class="faint">{text.note}</p>
    </>
  );
}
