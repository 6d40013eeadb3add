// A file on its way to the market: how far it is, what went wrong, and one at a time.
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../../core/format";
import { train } from "../../text/en";
import { Button } from "../../ui/button";
import { Bar } from "../../ui/parts";
import type { OnProgress, Progress } from "./chunks";

export interface SendingState {
  isBusy: boolean;
  problem: Error | null;
  progress: Progress | null;
  send: (act: (signal: AbortSignal, onProgress: OnProgress) => Promise<void>) => Promise<void>;
  fail: (problem: Error) => void;
  stop: () => void;
}

export function useSending(): SendingState {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const under = useRef<AbortController | null>(null);
  const stop = () => under.current?.abort();
  useEffect(() => stop, []);
  const send: SendingState["send"] = async (act) => {
    if (under.current) return;
    const mine = new AbortController();
    under.current = mine;
    setBusy(true);
    setProblem(null);
    setProgress(null);
    try {
      await act(mine.signal, setProgress);
    } catch (failure) {
      if (!mine.signal.aborted) setProblem(failure as Error);
    } finally {
      under.current = null;
      setBusy(false);
    }
  };
  return { isBusy, problem, progress, send, fail: setProblem, stop };
}

export function Sending({ state: { isBusy, progress, stop } }: { state: SendingState }) {
  if (!isBusy || !progress) return null;
  const { sent_bytes, all_bytes, isAway } = progress;
  const told = train.data.sending(bytes(sent_bytes), bytes(all_bytes));
  return (
    <div class="sending" role="status">
      <Bar share={sent_bytes / all_bytes} label={told} />
      <small class="faint">{isAway ? train.data.away(told) : told}</small>{" "}
      <Button kind="link" onClick={stop}>{train.data.stop}</Button>
    </div>
  );
}
