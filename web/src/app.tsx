import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, Problem, type Account, type Entry, type Job, type Machine, type Metrics } from "./api";
import { credits } from "./format";
import { Jobs } from "./jobs";
import { watch, type Topic } from "./live";
import { Machines } from "./machines";
import { Wallet } from "./wallet";

interface State {
  account: Account | null;
  machines: Machine[];
  jobs: Job[];
  metrics: Metrics | null;
  entries: Entry[];
  nextEntries: string | null;
}

const empty: State = { account: null, machines: [], jobs: [], metrics: null, entries: [], nextEntries: null };

// The code in the address signs in once; it is taken out of the address before anything else.
async function signInFromAddress(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  await api.signIn(code);
}

async function load(topics: Set<Topic>, selected: number | null): Promise<Partial<State>> {
  const part: Partial<State> = {};
  const work: Promise<unknown>[] = [];
  if (topics.has("account")) {
    work.push(api.account().then((account) => (part.account = account)));
    work.push(
      api.entries().then((page) => {
        part.entries = page.items;
        part.nextEntries = page.next_cursor;
      }),
    );
  }
  if (topics.has("machines")) work.push(api.machines().then((list) => (part.machines = list.items)));
  if (topics.has("jobs") || topics.has("metrics")) {
    const jobs = (await api.jobs()).items;
    part.jobs = jobs;
    const job = jobs.find((candidate) => candidate.id === selected) ?? jobs[0];
    if (job) work.push(api.metrics(job.id).then((metrics) => (part.metrics = metrics)));
  }
  await Promise.all(work);
  return part;
}

function Welcome({ problem }: { problem: string }) {
  return (
    <main class="welcome">
      <h1>Souk</h1>
      <p>Lend the part of a machine you do not need, and earn credits.</p>
      <p>Spend credits to train a model on machines others lend, however unequal they are.</p>
      <p>Every credit is held before work starts and settled to the microcredit.</p>
      {problem && <p class="problem">{problem}</p>}
      <div class="card">
        <p>To sign in, run this where you have an account; it prints an address that works once:</p>
        <pre>souk account open</pre>
      </div>
    </main>
  );
}

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
    } catch (failure) {
      if (failure instanceof Problem && failure.status === 401) setPhase("signed-out");
      else setProblem((failure as Error).message);
    }
  }, []);

  useEffect(() => {
    signInFromAddress()
      .catch((failure: Error) => setProblem(failure.message))
      .then(() => refresh(new Set<Topic>(["account", "machines", "jobs"])));
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
  if (phase === "signed-out" || !state.account) return <Welcome problem={problem} />;
  const signOut = async () => {
    // First: nothing may ask for what the session no longer shows.
    setPhase("signed-out");
    await api.signOut();
  };
  return (
    <>
      <header class="top">
        <a class="brand" href="/">
          <img src="/icon.svg" alt="" width="24" height="24" /> Souk
        </a>
        <span class={isOnline ? "live" : "live off"} role="status">
          {isOnline ? "live" : "reconnecting"}
        </span>
        <span class="grow" />
        <span title="available credits">{credits(state.account.available_microcredits)} credits</span>
        <strong>{state.account.name}</strong>
        <button class="link" onClick={signOut}>
          Sign out
        </button>
      </header>
      <main>
        {problem && <p class="problem">{problem}</p>}
        <Jobs
          jobs={state.jobs}
          selected={selected}
          select={setSelected}
          metrics={state.metrics}
          refresh={() => void refresh(new Set<Topic>(["jobs", "account"]))}
        />
        <Machines machines={state.machines} />
        <Wallet account={state.account} entries={state.entries} next={state.nextEntries} />
      </main>
    </>
  );
}
