// Something on its way to the market, or being read there: how far it is, what went wrong, one at a time. It goes on
// while other steps of the wizard are shown.
import { signal, type Signal } from "@preact/signals";
import { bytes } from "../../core/format";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Bar } from "../../ui/parts";
import type { OnProgress, Progress } from "./chunks";

export interface Sender {
  isBusy: Signal<boolean>;
  problem: Signal<Error | null>;
  progress: Signal<Progress | null>;
  send: (act: (signal: AbortSignal, onProgress: OnProgress) => Promise<void>) => Promise<void>;
  stop: () => void;
}

function sender(): Sender {
  const isBusy = signal(false);
  const problem = signal<Error | null>(null);
  const progress = signal<Progress | null>(null);
  let under: AbortController | null = null;
  const send: Sender["send"] = async (act) => {
    if (under) return;
    const mine = (under = new AbortController());
    isBusy.value = true;
    problem.value = progress.value = null;
    try {
      await act(mine.signal, (now) => {
        progress.value = now;
      });
    } catch (failure) {
      if (!mine.signal.aborted) problem.value = failure as Error;
    } finally {
      under = null;
      isBusy.value = false;
    }
  };
  const stop = () => {
    under?.abort();
    problem.value = null;
  };
  return { isBusy, problem, progress, send, stop };
}

export const codeSender = sender();
export const dataSender = sender();
export const mountSender = sender();
const all = [codeSender, dataSender, mountSender];
export const stopSending = () => all.forEach((each) => each.stop());

function told({ phase, done_bytes, all_bytes, isAway }: Progress): string {
  const far = train.sending[phase](bytes(done_bytes), bytes(all_bytes));
  return isAway ? train.sending.away(far) : far;
}

// For the other steps: that it goes on.
export function sendingNow(): string {
  const busy = all.find((each) => each.isBusy.value);
  return busy?.progress.value ? told(busy.progress.value) : "";
}

export function Sending({ of: { isBusy, progress, stop } }: { of: Sender }) {
  if (!isBusy.value || !progress.value) return null;
  const { done_bytes, all_bytes } = progress.value;
  const words = told(progress.value);
  return (
    <div class="sending" role="status">
      <Bar share={all_bytes > 0 ? done_bytes / all_bytes : 0} label={words} />
      <small class="faint">{words}</small>{" "}
      <Button kind="link" onClick={stop}>{train.sending.stop}</Button>
    </div>
  );
}
