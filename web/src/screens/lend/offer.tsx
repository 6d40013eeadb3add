// What of the machine is lent when, to whom and for how much. What is changed stays a draft until it is saved.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { patch } from "../../api/client";
import { fieldProblem, Problem } from "../../api/problem";
import { useDraft, useSubmit } from "../../core/form";
import { creditsShort } from "../../core/format";
import { myGroup } from "../../core/group";
import { useResource } from "../../core/resource";
import { myMachines, prices, unit, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Field, Select, Toggle, type Choice } from "../../ui/field";
import { Card, Note, ProblemNote, State } from "../../ui/parts";
import { tell } from "../../ui/toast";
import { Amounts } from "./amounts";
import { browserZone } from "./clock";
import { machineOf, offersOf, type LentOffer } from "./data";
import { Estimate } from "./estimate";
import { changesOf, estimateBody, faultsOf, priced, termsOf, type Fault, type Priced, type Terms } from "./terms";
import { WeekGrid } from "./week_grid";
import { always, hoursOf, never, nightsAndWeekends, readWhen, wordsOf } from "./week";

const text = words.offer;

export interface PartProps {
  terms: Terms;
  change: (some: Partial<Terms>) => void;
  faults: Partial<Record<Fault, string>>;
  problem: Error | null;
}

const parts = ["price", "who", "when"] as const;
type PartName = (typeof parts)[number];

const partTitles: Record<PartName, string> = { price: text.price, who: text.who, when: words.week.title };
const partOf = (fault: Fault): PartName => (fault === "week" ? "when" : fault === "accounts" || fault === "group" ? "who" : "price");
const placeOf = (name: PartName) => `offer-${name}`;

function Part({ title, name, hint, children }: { title: string; name?: PartName; hint?: string; children: ComponentChildren }) {
  const id = useId();
  return (
    <section class="part" id={name && placeOf(name)} tabIndex={name && -1} aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {hint && <p class="faint">{hint}</p>}
      {children}
    </section>
  );
}

function Hours({ terms, change, faults, problem, offer, isPainted }: PartProps & { offer: LentOffer; isPainted: boolean }) {
  const id = useId();
  const zones = [...new Set([terms.zone, offer.when === "always" ? browserZone() : offer.zone, browserZone()])].map((zone) => ({ value: zone, label: zone }));
  const wrong = faults.week ?? (fieldProblem(problem, "offer.when") || fieldProblem(problem, "offer.zone"));
  const isExact = isPainted || readWhen(offer.when).isExact;
  const said = isPainted ? wordsOf(terms.week) : offer.when;
  return (
    <Part title={partTitles.when} name="when" hint={words.week.hint}>
      <div class="row">
        <Button onClick={() => change({ week: always })}>{words.week.always}</Button>
        <Button onClick={() => change({ week: nightsAndWeekends })}>{words.week.nights}</Button>
        <Button onClick={() => change({ week: never })}>{words.week.clear}</Button>
      </div>
      {!isExact && <Note>{words.week.inexact(offer.when)}</Note>}
      <WeekGrid week={terms.week} onWeek={(week) => change({ week })} describedBy={id} />
      <p id={id} class="said">
        {wrong ? <span class="wrong-words" role="alert">{wrong}</span> : <><span class="when">{said}</span> <span class="faint">{words.week.hours(hoursOf(terms.week))}</span></>}
      </p>
      {zones.length > 1 && (
        <Select label={words.week.zone} hint={words.week.zoneHint} value={terms.zone} choices={zones} onValue={(zone) => change({ zone })} />
      )}
      {zones.length === 1 && <p class="faint">{words.week.inZone(terms.zone)}</p>}
    </Part>
  );
}

function Prices({ terms, change, faults, machine }: PartProps & { machine: Machine }) {
  const { data } = useResource(prices);
  const market: Record<Priced, number> | undefined = data && {
    core: data.core_hour_microcredits, ram: data.ram_gib_hour_microcredits,
    gpu: data.gpu_hour_microcredits, disk: data.disk_gib_hour_microcredits,
  };
  const shown = priced.filter((each) => each !== "gpu" || machine.probe.gpus_milli);
  return (
    <Part title={partTitles.price} name="price">
      <Toggle label={text.automatic} isOn={terms.isAutomatic} onValue={(isAutomatic) => change({ isAutomatic })} />
      <p class="faint">{terms.isAutomatic ? text.automaticHint : text.minimumHint}</p>
      {!terms.isAutomatic && (
        <div class="prices">
          {shown.map((each) => (
            <Field key={each} label={text.priceOf[each]} value={terms.prices[each]} error={faults[each]}
              hint={market && text.marketNow(creditsShort(market[each]), unit.value)}
              native={{ name: `price-${each}`, inputMode: "decimal", autocomplete: "off", maxLength: 20 }}
              onValue={(value) => change({ prices: { ...terms.prices, [each]: value } })} />
          ))}
        </div>
      )}
      {faults.prices && <p class="wrong-words" role="alert">{faults.prices}</p>}
      <Toggle label={text.spare} isOn={terms.spare} onValue={(spare) => change({ spare })} />
      <p class="faint">{text.spareHint}</p>
    </Part>
  );
}

function Group({ terms, change, problem }: PartProps) {
  const { data } = useResource(myGroup);
  const names = [...new Set([terms.group, data?.name ?? ""])].filter(Boolean);
  return (
    <Select label={text.group} value={terms.group} choices={names.map((name) => ({ value: name, label: name }))}
      onValue={(group) => change({ group })} error={fieldProblem(problem, "offer.group")} />
  );
}

function Audience(props: PartProps) {
  const { terms, change, faults, problem } = props;
  const { data: mine } = useResource(myGroup);
  const group = terms.group || mine?.name; // wait for the name: a group's offer needs it
  const choices: Choice<Terms["audience"]>[] = [
    { value: "anyone", label: text.audiences.anyone },
    { value: "accounts", label: text.audiences.accounts },
    ...(group ? [{ value: "group" as const, label: text.audiences.group }] : []),
  ];
  const choose = (audience: Terms["audience"]) =>
    change(audience === "group" && group ? { audience, group } : { audience });
  return (
    <Part title={partTitles.who} name="who">
      <Select label={text.audience} hint={text.ownerAlways} value={terms.audience} choices={choices} onValue={choose} />
      {terms.audience === "accounts" && (
        <Field label={text.accounts} hint={text.accountsHint} value={terms.accounts} rows={2} native={{ name: "accounts" }}
          error={faults.accounts ?? fieldProblem(problem, "offer.accounts")} onValue={(accounts) => change({ accounts })} />
      )}
      {terms.audience === "group" && <Group {...props} />}
    </Part>
  );
}

// Why it cannot be saved, and the way there: the part may be out of sight.
function Amiss({ faults }: { faults: PartProps["faults"] }) {
  const named = new Set((Object.keys(faults) as Fault[]).map(partOf));
  const show = (name: PartName) => {
    const place = document.getElementById(placeOf(name));
    place?.focus({ preventScroll: true });
    place?.scrollIntoView({ block: "center" });
  };
  return (
    <span class="amiss wrong-words">
      {text.amiss}
      {parts.filter((name) => named.has(name)).map((name) => (
        <Button key={name} kind="link" onClick={() => show(name)}>{partTitles[name]}</Button>
      ))}
    </span>
  );
}

const besideFields = ["offer.when", "offer.zone", "offer.accounts", "offer.group"];
const isBeside = (problem: Error | null) =>
  problem instanceof Problem && besideFields.some((field) => fieldProblem(problem, field));

interface OfferFormProps {
  offer: LentOffer;
  machine: Machine;
  children: ComponentChildren; // what else may be done with it
}

export function OfferForm({ offer, machine, children }: OfferFormProps) {
  const [draft, setDraft, clearDraft] = useDraft<Partial<Terms>>(`offer-${offer.id}`, {});
  const terms = { ...termsOf(offer), ...draft };
  const faults = faultsOf(terms);
  const body = changesOf(draft, terms);
  const isChanged = Object.keys(body).length > 0;
  const { isBusy, problem, submit, forget } = useSubmit(async () => {
    await patch("/v1/offers/{id}", { path: { id: offer.id }, body });
    await Promise.all([offersOf(machine.id).refresh(), machineOf(machine.id).refresh(), myMachines.refresh()]);
    clearDraft();
    tell(text.saved);
  });
  // Two changes may come within a frame.
  const latest = useRef(draft);
  latest.current = draft;
  const change = (some: Partial<Terms>) => {
    if (problem) forget();
    latest.current = { ...latest.current, ...some };
    setDraft(latest.current);
  };
  const hasFaults = Object.keys(faults).length > 0;
  const part: PartProps = { terms, change, faults, problem };
  return (
    <Card title={text.title} class="offer" action={<State state={offer.state} label={text.states[offer.state]} />}>
      <form onSubmit={(event) => { event.preventDefault(); if (!hasFaults) void submit(); }} noValidate>
        <div class="offer-parts">
          <Part title={text.howMuch}><Amounts {...part} probe={machine.probe} /></Part>
          <div>
            <Prices {...part} machine={machine} />
            <Audience {...part} />
          </div>
        </div>
        <Hours {...part} offer={offer} isPainted={draft.week !== undefined || draft.zone !== undefined} />
        <Estimate machine={machine.id} body={estimateBody(draft, terms, offer)} missing={hasFaults ? (hoursOf(terms.week) ? text.estimateLater : text.estimateNever) : ""} />
        {!isBeside(problem) && <ProblemNote problem={problem} />}
        <div class="row save">
          <Button kind="primary" type="submit" isBusy={isBusy} isDisabled={!isChanged || hasFaults}>{text.save}</Button>
          {isChanged && <Button isDisabled={isBusy} onClick={() => { forget(); clearDraft(); }}>{text.discard}</Button>}
          {hasFaults ? <Amiss faults={faults} /> : <span class="faint">{isChanged ? text.unsaved : text.running}</span>}
          <span class="grow" />
          {children}
        </div>
      </form>
    </Card>
  );
}
