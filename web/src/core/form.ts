// What forms have in common: drafts that outlive a reload, and a submit that happens once.
import { useCallback, useRef, useState } from "preact/hooks";
import { newKey } from "../api/client";
import { Unreachable } from "../api/problem";
import { common } from "../text/en";

export const PREFIX = "draft:";
let round = 0; // of forgetting: what a form still says after that is not kept

function stored<Value>(name: string, initial: Value): Value {
  const text = sessionStorage.getItem(PREFIX + name);
  if (text === null) return initial;
  try {
    const value: unknown = JSON.parse(text);
    const isRecord = typeof initial === "object" && initial !== null && !Array.isArray(initial);
    return (isRecord ? { ...initial, ...(value as object) } : value) as Value;
  } catch {
    return initial; // written by another version of the page
  }
}

type Change<Value> = Value | ((before: Value) => Value);

// Like useState, and kept in this tab until `clear`. Never for a password. A form of several fields changes by a
// function of what was before: a browser may fill them all before the page is drawn again.
export function useDraft<Value>(name: string, initial: Value): [Value, (change: Change<Value>) => void, () => void] {
  const [value, setValue] = useState<Value>(() => stored(name, initial));
  const newest = useRef(value);
  const begun = useRef(round);
  const set = useCallback(
    (change: Change<Value>) => {
      newest.current = typeof change === "function" ? (change as (before: Value) => Value)(newest.current) : change;
      if (begun.current === round) sessionStorage.setItem(PREFIX + name, JSON.stringify(newest.current));
      setValue(newest.current);
    },
    [name],
  );
  const clear = useCallback(() => {
    sessionStorage.removeItem(PREFIX + name);
    newest.current = initial;
    setValue(initial);
  }, [name]);
  return [value, set, clear];
}

const OWNER = "drafts-of";

// What one account typed in this tab is not for the next one to find.
export function keepDraftsOf(account: number): void {
  const owner = sessionStorage.getItem(OWNER);
  if (owner !== null && owner !== String(account)) forgetDrafts();
  sessionStorage.setItem(OWNER, String(account));
}

const forgetting = new Set<() => void>();

// For what was typed and must not be kept anywhere: secrets.
export function forgetToo(act: () => void): void {
  forgetting.add(act);
}

export function forgetDrafts(): void {
  round++;
  forgetting.forEach((act) => act());
  Object.keys(sessionStorage)
    .filter((key) => key.startsWith(PREFIX))
    .forEach((key) => sessionStorage.removeItem(key));
}

export interface Submit {
  isBusy: boolean;
  problem: Error | null;
  submit: (event?: Event) => Promise<boolean>; // whether it was done
  forget: () => void; // the problem
}

// `act` gets the key for its POST: the same one while the same thing is tried again (`what` says what it is), so that a
// lost answer does not do it twice. A second click while the first is under way does nothing.
export function useSubmit(act: (key: string) => Promise<unknown>, what = ""): Submit {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const under = useRef(false);
  const key = useRef({ what, value: newKey() });
  const submit = async (event?: Event) => {
    event?.preventDefault();
    if (under.current) return false;
    under.current = true;
    setBusy(true);
    setProblem(null);
    if (key.current.what !== what) key.current = { what, value: newKey() };
    try {
      await act(key.current.value);
      key.current = { what, value: newKey() };
      return true;
    } catch (failure) {
      setProblem(failure instanceof Unreachable ? new Unreachable(common.unreachableTyped) : (failure as Error));
      return false;
    } finally {
      under.current = false;
      setBusy(false);
    }
  };
  return { isBusy, problem, submit, forget: () => setProblem(null) };
}
