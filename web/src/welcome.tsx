import { useState } from "preact/hooks";
import { api } from "./api";

type Way = "sign-in" | "sign-up";

const words = {
  "sign-in": { title: "Sign in", other: "Open an account", autocomplete: "current-password" },
  "sign-up": { title: "Open an account", other: "Sign in", autocomplete: "new-password" },
} as const;

// What a browser can check before anyone is asked; the market has the last word.
const NAME = "[a-z0-9\\-]{1,40}";
const PASSWORD_LENGTH_MIN = 10;

function SignIn({ done }: { done: () => void }) {
  const [way, setWay] = useState<Way>("sign-in");
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [invite, setInvite] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      if (way === "sign-in") await api.signInByPassword(name, password);
      else await api.signUp(name, password, invite.trim());
      setPassword("");
      done();
    } catch (failure) {
      setProblem((failure as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const turn = () => {
    setWay(way === "sign-in" ? "sign-up" : "sign-in");
    setProblem("");
  };
  return (
    <form class="card sign-in" onSubmit={submit} aria-labelledby="way">
      <h2 id="way">{words[way].title}</h2>
      <label>
        Name
        <input
          name="name"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
          pattern={NAME}
          title="1 to 40 characters of a-z, 0-9 and -"
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          required
        />
      </label>
      <label>
        Password
        <input
          name="password"
          type="password"
          value={password}
          onInput={(event) => setPassword(event.currentTarget.value)}
          minLength={way === "sign-up" ? PASSWORD_LENGTH_MIN : undefined}
          autocomplete={words[way].autocomplete}
          required
        />
        {way === "sign-up" && <small class="faint">At least {PASSWORD_LENGTH_MIN} characters; a few words do well.</small>}
      </label>
      {way === "sign-up" && (
        <label>
          Invitation, if you have one
          <input name="invite" value={invite} onInput={(event) => setInvite(event.currentTarget.value)} autocomplete="off" />
        </label>
      )}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="row">
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "One moment …" : words[way].title}
        </button>
        <button type="button" class="link" onClick={turn}>
          {words[way].other}
        </button>
      </div>
    </form>
  );
}

export function Welcome({ problem, done }: { problem: string; done: () => void }) {
  return (
    <main class="welcome">
      <h1>Souk</h1>
      <p>Lend the part of a machine you do not need, and earn credits.</p>
      <p>Spend credits to train a model on machines others lend, however unequal they are.</p>
      <p>Every credit is held before work starts and settled to the microcredit.</p>
      {problem && <p class="problem">{problem}</p>}
      <SignIn done={done} />
      <p class="faint">
        An account without a password signs in by an address that works once: <code>souk account open</code>
      </p>
    </main>
  );
}
