// What stands around every screen: the top bar, the navigation (at the left, or at the bottom of a phone), notices.
import { useEffect, useRef, useState } from "preact/hooks";
import { credits, creditsCompact } from "../core/format";
import { connection } from "../core/live";
import { useResource } from "../core/resource";
import { link, route } from "../core/router";
import { signOut } from "../core/session";
import { account, server, unit, type Account } from "../core/store";
import { first, screens, type Screen } from "../screens";
import { common } from "../text/en";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { Note } from "../ui/parts";
import { ThemeButton } from "../ui/theme_button";
import { Outlet, useNotices, usePreload } from "./outlet";

const BOTTOM_COUNT = 4; // beside "More"

function Item({ screen }: { screen: Screen }) {
  const isHere = (route.value.screen || first) === screen.name;
  return (
    <a href={link(screen.name)} aria-current={isHere ? "page" : undefined}>
      <Icon name={screen.icon} size={22} />
      <span>{screen.label}</span>
    </a>
  );
}

// On a phone the first four stand at the bottom, the others behind "More".
function Navigation({ isOperator }: { isOperator: boolean }) {
  const shown = screens.filter((screen) => isOperator || !screen.isOperators);
  const [isOpen, setOpen] = useState(false);
  const holder = useRef<HTMLElement>(null);
  useEffect(() => setOpen(false), [route.value]);
  useEffect(() => {
    if (!isOpen) return;
    const close = (event: Event) => {
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      const isOutside = event.type === "pointerdown" && !holder.current?.contains(event.target as Node);
      if (isEscape || isOutside) setOpen(false);
    };
    document.addEventListener("keydown", close);
    document.addEventListener("pointerdown", close);
    return () => {
      document.removeEventListener("keydown", close);
      document.removeEventListener("pointerdown", close);
    };
  }, [isOpen]);
  return (
    <nav ref={holder} class="navigation" aria-label={common.nav.label}>
      <div class="items">
        {shown.slice(0, BOTTOM_COUNT).map((screen) => (
          <Item key={screen.name} screen={screen} />
        ))}
        <button type="button" class="more" aria-expanded={isOpen} aria-controls="more-screens" onClick={() => setOpen(!isOpen)}>
          <Icon name="more" size={22} />
          <span>{common.nav.more}</span>
        </button>
      </div>
      <div id="more-screens" class={`items rest${isOpen ? " open" : ""}`}>
        {shown.slice(BOTTOM_COUNT).map((screen) => (
          <Item key={screen.name} screen={screen} />
        ))}
      </div>
    </nav>
  );
}

function Top({ known }: { known: Account }) {
  return (
    <header class="top">
      <a class="brand" href="#/">
        <img src="/icon.svg" alt="" width="26" height="26" />
        <span>{common.name}</span>
      </a>
      <span class={`live ${connection.value}`} role="status">
        {common.connection[connection.value]}
      </span>
      <span class="grow" />
      <a class="balance" href={link("wallet")} title={`${credits(known.available_microcredits)} ${unit.value} ${common.available}`}>
        <strong>{creditsCompact(known.available_microcredits)}</strong> <span>{unit.value}</span>
      </a>
      <span class="who wide-only">{known.name}</span>
      <ThemeButton />
      <Button kind="link" icon="signOut" label={common.signOut} onClick={signOut} />
    </header>
  );
}

export function Frame() {
  const { data: known } = useResource(account);
  useResource(server);
  usePreload(known?.is_operator ?? false);
  useNotices(connection.value === "live");
  if (!known) return <main class="alone faint">{common.loading}</main>;
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        {common.nav.skip}
      </a>
      <Top known={known} />
      <Navigation isOperator={known.is_operator} />
      <main id="content" tabIndex={-1}>
        {known.frozen && <Note tone="bad">{common.frozen(known.frozen, unit.value)}</Note>}
        {known.grant === "waiting" && <Note tone="warn">{common.grantWaits(unit.value)}</Note>}
        {connection.value === "reconnecting" && <Note tone="warn">{common.waitingForMarket}</Note>}
        <Outlet isOperator={known.is_operator} />
      </main>
    </div>
  );
}
