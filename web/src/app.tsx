import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, Problem, type Account, type Entry, type Job, type Machine, type Metrics } from "./api";
import { credits } from "./format";
import { heldMachines, Jobs } from "./jobs";
import { watch, type Topic } from "./live";
import { Machines } from "./machines";
import { Unit, type Economy } from "./unit";
import { Wallet } from "./wallet";
import { Welcome } from "./welcome";

interface State {
  economy: Economy;
  account: Account | null;
  machines: Machine[];
  jobs: Job[];
  metrics: Metrics | null;
  entries: Entry[];
  nextEntries: string | null;
}

const empty: State = {
  economy: "credits",
  account: null,
  machines: [],
  jobs: [],
  metrics: null,
  entries: [],
  nextEntries: null,
};

// Scripts cannot see the session's cookie: that there is one is remembered beside it.
const wasSignedIn = () => localStorage.getItem("signed-in") !== null;
const remember = (isSignedIn: boolean) =>
  isSignedIn ? localStorage.setItem("signed-in", "") : localStorage.removeItem("signed-in");

// The code in the address signs in once; it is taken out of the address before anything else. Anyone can make a
// link with a code of their own: it does not put their account in the place of one that is signed in unasked.
async function signInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  const current = wasSignedIn() ? await api.account().catch(() => null) : null;
  if (current && !confirm(`You are signed in as ${current.name}. Sign in by this link instead?`)) return;
  await api.signIn(code);
}

async function loadJobs(part: Partial<State>, selected: number | null): Promise<void> {
  const jobs = (await api.jobs()).items;
  part.jobs = jobs;
  const job = jobs.find((candidate) => candidate.id === selected) ?? jobs[0];
  if (job) part.metrics = await api.metrics(job.id);
}

async function load(topics: Set<Topic>, selected: number | null): Promise<Partial<State>> {
  const part: Partial<State> = {};
  const work: Promise<unknown>[] = [];
  if (topics.has("account")) {
    work.push(api.account().then((account) => (part.account = account)));
    work.push(api.server().then((server) => (part.economy = server.economy)));
    work.push(
      api.entries().then((page) => {
        part.entries = page.items;
        part.nextEntries = page.next_cursor;
      }),
    );
  }
  if (topics.has("machines")) work.push(api.machines().then((list) => (part.machines = list.items)));
  if (topics.has("jobs") || topics.has("metrics")) work.push(loadJobs(part, selected));
  await Promise.all(work);
  return part;
}

const everything = () => new Set<Topic>(["account", "machines", "jobs"]);

export function App() {
  const [state, setState] = useState<State>(empty);
  const [phase, setPhase] = useState<"starting" | "signed-out" | "signed-in">("starting");
  const [problem, setProblem] = useState("");
  const [isOnline, setOnline] = useState(true);
  const [selected, setSelected] = useState<number | null>(null);
  const chosen = useRef<number | null>(null);
  chosen.current = selected;

  const refresh = useCallback(async (topics: Set<Topic>) => {
    try {
      const part = await load(topics, chosen.current);
      setState((previous) => ({ ...previous, ...part }));
      setProblem("");
      setPhase("signed-in");
      remember(true);
    } catch (failure) {
      if (failure instanceof Problem && failure.status === 401) {
        setPhase("signed-out");
        remember(false);
      } else setProblem((failure as Error).message);
    }
  }, []);

  useEffect(() => {
    signInFromAddress()
      .catch((failure: Error) => setProblem(failure.message))
      .then(() => refresh(everything()));
  }, []);
  useEffect(() => {
    if (phase !== "signed-in") return;
    const live = watch(refresh, setOnline);
    return () => live.close();
  }, [phase]);
  useEffect(() => {
    if (selected !== null) void refresh(new Set<Topic>(["metrics"]));
  }, [selected]);

  if (phase === "starting") return <main class="welcome faint">Loading …</main>;
  if (phase === "signed-out" || !state.account)
    return <Welcome problem={problem} done={() => void refresh(everything())} />;
  const signOut = async () => {
    // First: nothing may ask for what the session no longer shows.
    setPhase("signed-out");
    setState(empty);
    remember(false);
    await api.signOut();
  };
  return (
    <Unit.Provider value={state.economy}>
      <header class="top">
        <a class="brand" href="/">
          <img src="/icon.svg" alt="" width="24" height="24" /> Souk
        </a>
        <span class={isOnline ? "live" : "live off"} role="status">
          {isOnline ? "live" : "reconnecting"}
        </span>
        <span class="grow" />
        <span title={`available ${state.economy}`}>
          {credits(state.account.available_microcredits)} {state.economy}
        </span>
        <strong>{state.account.name}</strong>
        <button class="link" onClick={signOut}>
          Sign out
        </button>
      </header>
      <main>
        {problem && <p class="problem">{problem}</p>}
        {state.account.frozen && (
          <p class="problem">
            The operator has frozen this account: {state.account.frozen}. Its {state.economy} stay; what runs is settled.
          </p>
        )}
        {state.account.grant === "waiting" && (
          <p class="notice">
            Your first {state.economy} come on one of the next days: today's are given out, or another account of this network
            got some.
          </p>
        )}
        <Jobs
          jobs={state.jobs}
          selected={selected}
          select={setSelected}
          metrics={state.metrics}
          held={heldMachines(state.machines)}
          refresh={() => void refresh(new Set<Topic>(["jobs", "account"]))}
        />
        <Machines machines={state.machines} />
        <Wallet account={state.account} entries={state.entries} next={state.nextEntries} />
      </main>
    </Unit.Provider>
  );
}
