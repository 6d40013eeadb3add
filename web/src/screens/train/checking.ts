// The market's word on the job file, asked again a moment after each change: mistakes, quote, costs.
import { useEffect, useRef, useState } from "preact/hooks";
import { postPlain, type Schemas } from "../../api/client";
import { hearStale } from "../../core/live";
import { isWithin, stepOf, type Mistake, type Step } from "./draft";

export type Check = Schemas["JobCheck"];

const TYPED_MS = 250; // after the last key
const NEWS_MS = 3000; // machines come and go: the quote is asked for again, this often at most

export interface Checking {
  check: Check | undefined; // the last there was
  isFresh: boolean; // it is about what stands here now
  problem: Error | null;
  mistakes: Mistake[]; // the page's own and the market's
  wrong: (field: string) => string; // beside a field; empty: nothing
  mistakesOf: (step: Step) => Mistake[];
}

// Counts up when what the market would answer may have changed.
function useNews(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    let timer = 0;
    const stop = hearStale((topics) => {
      if (timer || !(topics.has("machines") || topics.has("prices"))) return;
      timer = window.setTimeout(() => {
        timer = 0;
        setCount((known) => known + 1);
      }, NEWS_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return count;
}

// Whoever comes to another step finds the market's newest word there.
export function useCheck(text: string, step: Step, own: Mistake[]): Checking {
  const [known, setKnown] = useState<{ of: string; check?: Check; problem: Error | null }>({ of: "", problem: null });
  const news = useNews();
  const asked = useRef("");
  useEffect(() => {
    const stop = new AbortController();
    const ask = async () => {
      asked.current = text;
      try {
        const check = await postPlain("/v1/jobs/check", { body: text, type: "application/yaml" }, stop.signal);
        setKnown({ of: text, check, problem: null });
      } catch (failure) {
        if (!stop.signal.aborted) setKnown((before) => ({ ...before, problem: failure as Error }));
      }
    };
    const timer = setTimeout(() => void ask(), asked.current ? TYPED_MS : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, news, step]);
  const mistakes = [...own, ...(known.check?.mistakes ?? [])];
  return {
    check: known.check,
    isFresh: known.check !== undefined && known.of === text,
    problem: known.problem,
    mistakes,
    wrong: (field) => mistakes.find((mistake) => isWithin(mistake.field, field))?.text ?? "",
    mistakesOf: (step) => mistakes.filter((mistake) => stepOf(mistake.field) === step),
  };
}
