// The screen of the address. Its script is loaded when it is first shown; once the page is at rest all others are
// loaded too, so that a market that restarts, or a lost network, does not stand between two screens.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { route } from "../core/router";
import { first, screens, type Screen, type ScreenProps } from "../screens";
import { common } from "../text/en";
import { Button } from "../ui/button";
import { Empty, Note, Skeleton } from "../ui/parts";

const FIRST = "first screen"; // the mark the tests measure the first load by
let tellFirst: () => void = () => undefined;
const firstShown = new Promise<void>((done) => {
  tellFirst = () => {
    performance.mark(FIRST);
    tellFirst = () => undefined;
    done();
  };
});
const loaded = new Map<string, ComponentType<ScreenProps>>();

async function load(screen: Screen): Promise<void> {
  if (loaded.has(screen.name)) return;
  loaded.set(screen.name, (await screen.load()).default);
}

function whenAtRest(act: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(act, { timeout: 5000 });
  else setTimeout(act, 1500);
}

export function usePreload(isOperator: boolean): void {
  useEffect(() => {
    const rest = screens.filter((screen) => isOperator || !screen.isOperators);
    // What fails now is loaded when it is shown, and says so there.
    void firstShown.then(() => whenAtRest(() => void Promise.allSettled(rest.map(load))));
  }, [isOperator]);
}

// Nobody waits for notifications: they come after the first screen, or with the next connection if that fails.
export function useNotices(isLive: boolean): void {
  const [module, setModule] = useState<typeof import("./notify") | null>(null);
  useEffect(() => {
    if (isLive && !module) void firstShown.then(() => import("./notify")).then(setModule, () => undefined);
  }, [isLive]);
  useEffect(() => module?.startNotices(), [module]);
}

function Loaded({ screen }: { screen: Screen }) {
  const [, redraw] = useState(0);
  const [failure, setFailure] = useState<Error | null>(null);
  const Shown = loaded.get(screen.name);
  useEffect(() => {
    if (Shown) {
      tellFirst();
      return;
    }
    load(screen).then(() => redraw((count) => count + 1), setFailure);
  }, [Shown]);
  if (Shown) return <Shown rest={route.value.rest} query={route.value.query} />;
  if (!failure) return <Skeleton lines={6} />;
  return (
    <>
      <Note tone="bad">
        {common.screenFailed} {failure.message}
      </Note>
      <Button kind="primary" onClick={() => location.reload()}>
        {common.reload}
      </Button>
    </>
  );
}

export function Outlet({ isOperator }: { isOperator: boolean }) {
  const name = route.value.screen || first;
  const screen = screens.find((each) => each.name === name && (isOperator || !each.isOperators));
  useEffect(() => {
    document.title = screen && screen.name !== first ? `${screen.label} · ${common.name}` : common.name;
  }, [screen]);
  if (!screen) return <Empty icon="search" title={common.nothingThere} />;
  return <Loaded key={screen.name} screen={screen} />;
}
