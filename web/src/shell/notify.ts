// Tells what happens, as the live events say it, while the page is in the background.
import { get } from "../api/client";
import { creditsShort } from "../core/format";
import { hear, type Events } from "../core/live";
import { chosen, tellOutside, type Notice, type Told } from "../core/notices";
import { go, link } from "../core/router";
import { unit, type Machine } from "../core/store";
import { notices as words } from "../text/en";

const EARNED_EVERY_MS = 3_600_000;
type Condition = "well" | "lost" | "paused";

const isOn = (kind: Notice) => document.hidden && chosen.peek().includes(kind);

function tellIf(kind: Notice, told: Told, address: string): void {
  if (isOn(kind)) tellOutside({ ...told, onClick: () => go(address) });
}

// What cannot be read is not told: the page says when the market is away.
const quietly = (work: Promise<void>) => void work.catch(() => undefined);

async function tellJob(event: Events["state"]): Promise<void> {
  const ended = words.states[event.state];
  if (!ended && !event.reason) return;
  const job = await get("/v1/jobs/{id}", { path: { id: event.job } });
  const cost = words.jobCost(creditsShort(job.spent_microcredits), unit.value);
  tellIf("jobs", {
    tag: `job-${job.id}`,
    title: ended ? words.jobEnded(job.name, ended) : words.jobWaits(job.name),
    body: [event.reason, ended && cost].filter(Boolean).join(" "),
  }, link("jobs", job.id));
}

// The owner's work at a machine comes and goes by itself and is no news.
function conditionOf(machine: Machine): Condition {
  if (machine.state !== "online") return "lost";
  const isHeld = ["paused", "paused_remotely", "draining"].includes(machine.yield) || machine.offer_state === "paused";
  return isHeld ? "paused" : "well";
}

export function startNotices(): () => void {
  const known = new Map<number, Condition>(); // this account's machines, since the page went into the background
  let earned_microcredits = 0;
  let told_ms = -Infinity;

  const learn = async () => {
    const mine = await get("/v1/machines", { query: { mine: true, limit: 500 } });
    known.clear();
    mine.items.forEach((machine) => known.set(machine.id, conditionOf(machine)));
  };
  const tellMachine = async (id: number) => {
    const before = known.get(id);
    const machine = await get("/v1/machines/{id}", { path: { id } });
    const after = conditionOf(machine);
    if (before === after || known.get(id) !== before) return;
    known.set(id, after);
    tellIf("machines", { tag: `machine-${id}`, title: words.machine[after](machine.name), body: words.machineHints[after] }, link("lend", id));
  };
  const onState = (events: Events["state"][]) => {
    if (isOn("jobs")) events.filter((event) => event.job && !event.lease).forEach((event) => quietly(tellJob(event)));
    const touched = new Set(events.filter((event) => !event.job && known.has(event.machine)).map((event) => event.machine));
    if (isOn("machines")) touched.forEach((id) => quietly(tellMachine(id)));
  };
  const onAccount = (events: Events["account"][]) => {
    for (const { change, amount_microcredits: amount } of events) {
      if (change === "post") earned_microcredits += amount;
      if (change === "transfer" && amount > 0)
        tellIf("earnings", { tag: "given", title: words.given(creditsShort(amount), unit.value), body: "" }, link("wallet"));
    }
    if (!isOn("earnings") || earned_microcredits === 0 || performance.now() - told_ms < EARNED_EVERY_MS) return;
    tellIf("earnings", { tag: "earned", title: words.earned(creditsShort(earned_microcredits), unit.value), body: "" }, link("lend"));
    earned_microcredits = 0;
    told_ms = performance.now();
  };
  const onHidden = () => {
    earned_microcredits = 0; // of before was seen as it came
    if (isOn("machines")) quietly(learn());
  };
  document.addEventListener("visibilitychange", onHidden);
  onHidden();
  const stops = [hear("state", onState), hear("account", onAccount), () => document.removeEventListener("visibilitychange", onHidden)];
  return () => stops.forEach((stop) => stop());
}
