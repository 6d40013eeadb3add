// Whether somebody is signed in here, and how they come and go.
import { effect, signal } from "@preact/signals";
import { forgetAnswers, get, onUnauthorized, post, remove } from "../api/client";
import { Problem } from "../api/problem";
import { common } from "../text/en";
import { ask } from "../ui/dialog";
import { complain } from "../ui/toast";
import { forgetDrafts, keepDraftsOf } from "./form";
import { connection, startLive } from "./live";
import { clearResources } from "./resource";
import { account, server } from "./store";

export type Phase = "starting" | "unreachable" | "signed-out" | "signed-in";
export const phase = signal<Phase>("starting");
export const refusal = signal<Error | null>(null); // of a sign-in by a link
export const hasExpired = signal(false); // the session of somebody who was at work here

// Scripts cannot see the session's cookie: that there is one is remembered beside it.
const KEY = "signed-in";
const wasSignedIn = () => localStorage.getItem(KEY) !== null;
const RETRY_MS = 1000;
let stopLive: () => void = () => undefined;

function become(next: Phase): void {
  if (phase.peek() === next) return;
  stopLive();
  stopLive = next === "signed-in" ? startLive() : () => undefined;
  if (next === "signed-in") localStorage.setItem(KEY, "");
  if (next === "signed-out") localStorage.removeItem(KEY);
  phase.value = next;
}

function forget(): void {
  forgetAnswers();
  clearResources();
}

// A session that has ended keeps what was typed for whose it was.
onUnauthorized(() => {
  hasExpired.value = phase.peek() === "signed-in";
  become("signed-out");
  forget();
});

// A stream that ends does not say why: the account does, as soon as the market answers.
effect(() => {
  if (connection.value === "reconnecting" && phase.peek() === "signed-in") void account.refresh();
});

// Reads who is signed in; while the market cannot be reached it says so and tries again.
export async function enter(): Promise<void> {
  forget();
  await Promise.all([account.refresh(), server.refresh()]);
  const problem = account.problem.peek();
  if (!problem) {
    keepDraftsOf(account.data.peek()!.id);
    hasExpired.value = false;
    refusal.value = null;
    become("signed-in");
  } else if (problem instanceof Problem && problem.status === 401) become("signed-out");
  else {
    become("unreachable");
    setTimeout(() => void enter(), RETRY_MS);
  }
}

// The code in the address signs in once; it is taken out of the address before anything else. Anyone can make a
// link with a code of their own: it does not put their account in the place of one that is signed in unasked.
async function signInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  const current = wasSignedIn() ? await get("/v1/account").catch(() => null) : null;
  if (current && !(await ask({ title: common.signInInstead(current.name), action: common.signIn }))) return;
  await post("/v1/sessions", { body: { code } });
  localStorage.setItem(KEY, "");
}

export async function start(): Promise<void> {
  let failure: Error | null = null;
  try {
    await signInFromAddress();
  } catch (refused) {
    failure = refused as Error;
  }
  if (wasSignedIn()) await enter();
  else become("signed-out");
  if (failure && phase.peek() === "signed-in") complain(failure);
  else refusal.value = failure;
}

// Nothing is asked for, shown or kept of who was signed in.
export function leave(): void {
  hasExpired.value = false;
  become("signed-out");
  forget();
  forgetDrafts();
}

export async function signOut(): Promise<void> {
  leave(); // first: nothing may ask for what the session no longer shows
  await remove("/v1/sessions");
}
