// The browser's own <dialog>: it keeps the focus, and Escape closes it.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { common } from "../text/en";
import { Button } from "./button";

interface DialogProps {
  title: string;
  children?: ComponentChildren;
  actions: ComponentChildren;
  onClose: () => void;
}

export function Dialog({ title, children, actions, onClose }: DialogProps) {
  const holder = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = holder.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={holder} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <h2 id={id}>{title}</h2>
      {children}
      <footer class="row">{actions}</footer>
    </dialog>
  );
}

interface Question {
  title: string;
  body?: ComponentChildren;
  action: string;
  keep?: string; // the other button, where "Cancel" could be taken for the action
  isDanger?: boolean;
}

const asked = signal<(Question & { answer: (isYes: boolean) => void }) | null>(null);

// Asks before something that cannot be undone: `if (await ask({ title, body, action })) …`
export function ask(question: Question): Promise<boolean> {
  asked.peek()?.answer(false);
  return new Promise((done) => {
    asked.value = {
      ...question,
      answer: (isYes) => {
        asked.value = null;
        done(isYes);
      },
    };
  });
}

export function Questions() {
  const question = asked.value;
  if (!question) return null;
  return (
    <Dialog
      title={question.title}
      onClose={() => question.answer(false)}
      actions={
        <>
          <Button onClick={() => question.answer(false)}>{question.keep ?? common.cancel}</Button>
          <Button kind={question.isDanger ? "danger" : "primary"} onClick={() => question.answer(true)}>
            {question.action}
          </Button>
        </>
      }
    >
      {question.body && <p>{question.body}</p>}
    </Dialog>
  );
}
