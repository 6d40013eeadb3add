import { useEffect } from "preact/hooks";
import { phase, start } from "../core/session";
import { common } from "../text/en";
import { Questions } from "../ui/dialog";
import { Toasts } from "../ui/toast";
import { Welcome } from "../screens/welcome";
import { Frame } from "./frame";
import "../core/theme";

function Body() {
  if (phase.value === "signed-in") return <Frame />;
  if (phase.value === "signed-out") return <Welcome />;
  return (
    <main class="alone faint" role="status">
      {phase.value === "unreachable" ? common.waitingForMarket : common.loading}
    </main>
  );
}

export function App() {
  useEffect(() => void start(), []);
  return (
    <>
      <Body />
      <Questions />
      <Toasts />
    </>
  );
}
