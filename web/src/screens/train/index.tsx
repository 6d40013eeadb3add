// "Train a model": four steps to a job. What is typed makes one job file, which the market checks after each change.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, postPlain } from "../../api/client";
import { useDraft } from "../../core/form";
import { creditsShort } from "../../core/format";
import { go, link, setQuery } from "../../core/router";
import { unit } from "../../core/store";
import { train as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Head, Note, ProblemNote } from "../../ui/parts";
import type { ScreenProps } from "..";
import { draftOf } from "./again";
import { forgetChoice } from "./choose";
import { useCheck, type Checking } from "./checking";
import { Data, datasets } from "./data";
import { emptyDraft, jobFile, ownMistakes, steps, type Draft, type Json, type Step } from "./draft";
import { Machines } from "./machines";
import { forgetMounts } from "./mounts";
import { forgetData, goOn } from "./own";
import { Review } from "./review";
import { forgetSecrets, secretMistakes } from "./secrets";
import { sendingNow, stopSending } from "./sending";
import { What } from "./what";
import "./style.css";

export interface StepProps {
  draft: Draft;
  change: (part: Partial<Draft> | ((now: Draft) => Partial<Draft>)) => void; // by a function: from what stands there now
  now: () => Draft; // also before the next frame
  checking: Checking;
  wrong: (field: string) => string;
  text: string; // the job file
  done: () => void; // the job was submitted: the draft has served
}

const shown = { what: What, data: Data, machines: Machines, check: Review };

async function specOf(file: Json): Promise<Json> {
  const { spec } = await postPlain("/v1/jobs/check", { body: JSON.stringify(file), type: "application/yaml" });
  return (spec ?? {}) as Json;
}

// A job that says nothing but what it must, as the market fills it in.
async function readJob(id: number): Promise<{ name: string; draft: Draft }> {
  const job = await get("/v1/jobs/{id}", { path: { id } });
  const spec = job.spec as Json;
  const { runtime } = spec;
  const [usual, sets] = await Promise.all([
    specOf(runtime !== "native" ? { name: "usual", runtime, run: "true" } : { name: "usual", train: { model: "logistic", data: "fashion-mnist" } }),
    get("/v1/datasets"),
  ]);
  const draft = draftOf(spec, usual);
  const isHere = draft.source === "catalogue" && sets.items.some((set) => set.name === draft.dataset && set.is_here);
  return { name: job.name, draft: isHere ? { ...draft, sent: null } : draft };
}

function Steps({ step, checking }: { step: Step; checking: Checking }) {
  return (
    <nav class="steps" aria-label={words.stepsLabel}>
      <ol>
        {steps.map((name, at) => {
          const count = checking.mistakesOf(name).length;
          return (
            <li key={name}>
              <a href={link("train", name)} aria-current={name === step ? "step" : undefined}>
                <span class="number">{at + 1}</span> {words.steps[name]}
                {count > 0 && <span class="count" title={words.mistakes(count)}><span class="hidden">{words.mistakes(count)}</span><span aria-hidden="true">{count}</span></span>}
              </a>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

function Foot({ step, checking }: { step: Step; checking: Checking }) {
  const at = steps.indexOf(step);
  const before = steps[at - 1], after = steps[at + 1];
  const { check, isFresh } = checking;
  const held = check?.quote ? words.wouldHold(creditsShort(check.held_microcredits), unit.value) : "";
  return (
    <footer class="row wizard-foot">
      {before && <a class="button" href={link("train", before)}>{words.back}</a>}
      <span class="faint" role="status">{sendingNow() || (isFresh ? held : words.checking)}</span>
      <span class="grow" />
      {after && <a class="button primary" href={link("train", after)}>{words.next(words.steps[after])}</a>}
    </footer>
  );
}

// Fills the draft from the job in the address, once: what is changed then is not overwritten by a reload.
function useFrom(from: string | null, setDraft: (draft: Draft) => void) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<Error | null>(null);
  useEffect(() => {
    if (!from) return;
    let isWanted = true;
    setProblem(null);
    readJob(Number(from)).then(
      (read) => {
        if (!isWanted) return;
        setDraft(read.draft);
        setName(read.name);
        setQuery({ from: undefined });
      },
      (failure: Error) => isWanted && setProblem(failure),
    );
    return () => {
      isWanted = false;
    };
  }, [from]);
  return { name, problem };
}

export default function Train({ rest, query }: ScreenProps) {
  const [draft, setDraft, clear] = useDraft<Draft>("train-2", emptyDraft());
  const latest = useRef(draft);
  latest.current = draft;
  const put = (next: Draft) => {
    latest.current = next;
    setDraft(next);
  };
  const change: StepProps["change"] = (part) =>
    put({ ...latest.current, ...(typeof part === "function" ? part(latest.current) : part) });
  const { name: fromName, problem: fromProblem } = useFrom(query.get("from"), put);
  const text = JSON.stringify(jobFile(draft));
  const step = steps.find((each) => each === rest[0]) ?? "what";
  const checking = useCheck(text, step, [...ownMistakes(draft), ...secretMistakes(draft)]);
  const done = () => {
    clear();
    latest.current = emptyDraft(); // what stops says so before the next frame
    stopSending();
    forgetChoice();
    forgetData();
    forgetMounts();
    forgetSecrets();
  };
  const anew = async () => {
    if (!(await ask({ title: words.anewAsk, body: words.anewBody, action: words.anew }))) return;
    done();
    go(link("train"));
  };
  useEffect(() => datasets.show(), []);
  const now = () => latest.current;
  useEffect(() => {
    goOn({ now, change });
    return stopSending; // what was sent so far is known when it is chosen again
  }, []);
  const shownStep = useRef(step);
  useEffect(() => {
    if (shownStep.current === step) return;
    shownStep.current = step;
    scrollTo(0, 0);
    document.getElementById("content")?.focus(); // whoever hears the page is told where it begins anew
  }, [step]);
  const Shown = shown[step];
  return (
    <div class="train">
      <Head title={words.title}>
        <Button kind="link" onClick={anew}>{words.anew}</Button>
      </Head>
      <ProblemNote problem={fromProblem} />
      {fromName && <Note>{words.from(fromName)}</Note>}
      <Steps step={step} checking={checking} />
      {step !== "check" && <ProblemNote problem={checking.problem} />}
      <Shown draft={draft} change={change} now={now} checking={checking} wrong={checking.wrong} text={text} done={done} />
      {step !== "check" && <Foot step={step} checking={checking} />}
    </div>
  );
}
