// One machine of this account: what it does now, what it lends and to whom, what it earned, how it is thought of.
import { useState } from "preact/hooks";
import { post, remove } from "../../api/client";
import { bytes, cores, creditsShort, number, percent, thousandths } from "../../core/format";
import { usePauses } from "../../core/pauses";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { unit, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Select } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { MachineState } from "../../ui/machine_state";
import { Card, Empty, Figure, Figures, Head, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { machineOf, offersOf, useHeartbeat, type LentOffer } from "./data";
import { Earnings } from "./earnings";
import { Leases } from "./leases";
import { OfferForm } from "./offer";
import { Pause, PauseNote } from "./pause";
import { Reputation } from "./reputation";

const OFFERS_MAX = 16; // of one machine: the market takes no more

function powerWords(live: Machine["live"]): string {
  if (!live?.power || live.power === "unknown") return "";
  return live.power === "mains" ? words.mains : words.battery(percent((live.battery_percent ?? 0) / 100, 0));
}

function Now({ machine }: { machine: Machine }) {
  const { offer } = machine;
  const live = useHeartbeat(machine);
  const load_milli = live?.load_milli;
  const temperature = live?.temperature_c;
  return (
    <Figures isCard>
      <Figure label={words.earnedAll} value={creditsShort(machine.earned_microcredits)} unit={unit.value} />
      <Figure label={words.leasedNow} value={words.of(thousandths(machine.leased_cores_milli), thousandths(offer.cores_milli))} unit={words.coresLent}
        note={words.leaseCount(machine.lease_count)} />
      <Figure label={words.load} value={load_milli === undefined ? "–" : thousandths(load_milli)} unit={words.coresBusy}
        note={words.loadNote} />
      <Figure label={words.temperature} value={temperature ? `${number(temperature)} °C` : "–"}
        note={live && !temperature ? words.noSensor : powerWords(live)} />
      <Figure label={words.memoryFree} value={bytes(machine.free.ram_bytes)} unit={words.memoryLent(bytes(offer.ram_bytes))}
        note={live?.free_ram_bytes === undefined ? undefined : words.memoryThere(bytes(live.free_ram_bytes))} />
      <Figure label={words.roundTrip} value={live?.rtt_us ? words.ms(number(live.rtt_us / 1000, live.rtt_us < 10_000 ? 2 : 0)) : "–"} />
    </Figures>
  );
}

function Offers({ machine }: { machine: Machine }) {
  const shown = offersOf(machine.id);
  const { data, problem } = useResource(shown);
  const [selected, setSelected] = useState(0);
  const [isMaking, setMaking] = useState(false); // hides other forms until the list has the new offer
  const offers = data?.items ?? [];
  const offer = isMaking ? undefined : offers.find((each) => each.id === selected) ?? offers[0];
  const make = async () => {
    setMaking(true);
    try {
      const made = await post("/v1/machines/{id}/offers", { path: { id: machine.id }, body: {} });
      setSelected(made.id);
      await shown.refresh();
    } finally {
      setMaking(false);
    }
  };
  const withdraw = async (each: LentOffer) => {
    const isSure = await ask({ title: words.offer.withdrawTitle(each.id), body: words.offer.withdrawBody, action: words.offer.withdraw, isDanger: true });
    if (!isSure) return;
    await remove("/v1/offers/{id}", { path: { id: each.id } });
    await Promise.all([shown.refresh(), machineOf(machine.id).refresh()]);
  };
  return (
    <>
      <ProblemNote problem={problem} />
      {(!data || isMaking) && !problem && <Card title={words.offer.title}><Skeleton lines={6} /></Card>}
      {data && !offer && !isMaking && (
        <Card title={words.offer.title}>
          <Empty icon="lend" title={words.offer.none}>
            <Button kind="primary" onClick={make}>{words.offer.make}</Button>
          </Empty>
        </Card>
      )}
      {offers.length > 1 && offer && (
        <Card class="offers">
          <Select label={words.offer.which} name="offer" value={String(offer.id)} onValue={(id) => setSelected(Number(id))}
            choices={offers.map((each) => ({ value: String(each.id), label: words.offer.named(each.id, cores(each.cores_milli), each.when) }))} />
        </Card>
      )}
      {offer && (
        <OfferForm key={offer.id} offer={offer} machine={machine}>
          {offers.length < OFFERS_MAX && <Button kind="link" onClick={make}>{words.offer.another}</Button>}
          <Button kind="link" onClick={() => withdraw(offer)}>{words.offer.withdraw}</Button>
        </OfferForm>
      )}
    </>
  );
}

export function MachineScreen({ id }: { id: number }) {
  const shown = machineOf(id);
  const { data: machine, problem } = useResource(shown);
  usePauses(machine && [machine]);
  return (
    <>
      <a class="back" href={link("lend")}>
        <Icon name="back" size={16} /> {words.back}
      </a>
      <Head title={machine ? machine.name : words.title}>
        {machine && <MachineState machine={machine} />}
        {machine?.is_mine && <Pause machine={machine} isWhole />}
      </Head>
      <ProblemNote problem={problem} />
      {machine?.is_mine && <PauseNote machine={machine} />}
      {!machine && !problem && <Skeleton lines={6} />}
      {machine && !machine.is_mine && <Note tone="warn">{words.notYours}</Note>}
      {machine?.is_mine && (
        <>
          <Now machine={machine} />
          <Leases machine={machine} />
          <Offers machine={machine} />
          <Earnings machine={machine} />
          <Reputation machine={machine} />
        </>
      )}
    </>
  );
}
