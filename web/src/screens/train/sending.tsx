// A file on its way to the market: how far it is, what went wrong, and one at a time.
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../../core/format";
import { train } from "../../text/en";
import { Bar } from "../../ui/parts";
import type { OnSent } from "./upload";

export interface SendingState {
  isBusy: boolean;
  problem: Error | null;
  sent: { sent_bytes: number; all_bytes: number } | null;
  send: (act: (signal: AbortSignal, onSent: OnSent) => Promise<void>) => Promise<void>;
  forget: () => void;
}

export function useSending(): SendingState {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const [sent, setSent] = useState<SendingState["sent"]>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const send: SendingState["send"] = async (act) => {
    if (stop.current) return;
    const mine = new AbortController();
    stop.current = mine;
    setBusy(true);
    setProblem(null);
    setSent(null);
    try {
      await act(mine.signal, (sent_bytes, all_bytes) => setSent({ sent_bytes, all_bytes }));
    } catch (failure) {
      if (!mine.signal.aborted) setProblem(failure as Error);
    } finally {
      stop.current = null;
      setBusy(false);
    }
  };
  return { isBusy, problem, sent, send, forget: () => setProblem(null) };
}

export function Sending({ state: { isBusy, sent } }: { state: SendingState }) {
  if (!isBusy || !sent) return null;
  const told = train.data.sending(bytes(sent.sent_bytes), bytes(sent.all_bytes));
  return (
    <div class="sending" role="status">
      <Bar share={sent.sent_bytes / sent.all_bytes} label={told} />
      <small class="faint">{told}</small>
    </div>
  );
}
