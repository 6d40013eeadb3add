// One machine of this account: what it does now, what it lends and to whom, what it earned, how it is thought of.
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { bytes, cores, creditsShort, number, percent } from "../../core/format";
import { useResource } from "../../core/resource";
import { link } from "../../core/router";
import { unit, type Machine } from "../../core/store";
import { lend as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Select } from "../../ui/field";
import { MachineState } from "../../ui/machine_state";
import { Card, Empty, Figure, Figures, Head, Note, ProblemNote, Skeleton } from "../../ui/parts";
import { machineOf, offersOf, useFresh } from "./data";
import { Earnings } from "./earnings";
import { Leases } from "./leases";
import { OfferForm } from "./offer";
import { Pause } from "./pause";
import { Reputation } from "./reputation";

function powerWords({ live }: Machine): string {
  if (!live?.power || live.power === "unknown") return "";
  return live.power === "mains" ? words.mains : words.battery(percent((live.battery_percent ?? 0) / 100, 0));
}

function Now({ machine }: { machine: Machine }) {
  const { live, offer } = machine;
  const load_milli = live?.load_milli;
  const temperature = live?.temperature_c;
  return (
    <Figures isCard>
      <Figure label={words.earnedAll} value={creditsShort(machine.earned_microcredits)} unit={unit.value} />
      <Figure label={words.leasedNow} value={words.of(number(machine.leased_cores_milli / 1000, 1), number(offer.cores_milli / 1000, 1))} unit={words.coresLent}
        note={words.leaseCount(machine.lease_count)} />
      <Figure label={words.load} value={load_milli === undefined ? "–" : number(load_milli / 1000, 2)} unit={words.coresBusy}
        note={words.loadNote} />
      <Figure label={words.temperature} value={temperature ? `${number(temperature)} °C` : "–"}
        note={live && !temperature ? words.noSensor : powerWords(machine)} />
      <Figure label={words.memoryFree} value={live?.free_ram_bytes === undefined ? "–" : bytes(live.free_ram_bytes)} />
      <Figure label={words.roundTrip} value={live?.rtt_us ? words.ms(number(live.rtt_us / 1000, live.rtt_us < 10_000 ? 2 : 0)) : "–"} />
    </Figures>
  );
}

function Offers({ machine }: { machine: Machine }) {
  const shown = offersOf(machine.id);
  const { data, problem } = useResource(shown);
  const [selected, setSelected] = useState("");
  const offers = data?.items ?? [];
  const offer = offers.find((each) => String(each.id) === selected) ?? offers[0];
  const make = async () => {
    await post("/v1/machines/{id}/offers", { path: { id: machine.id }, body: {} });
    await shown.refresh();
  };
  return (
    <>
      <ProblemNote problem={problem} />
      {!data && !problem && <Card title={words.offer.title}><Skeleton lines={6} /></Card>}
      {data && !offer && (
        <Card title={words.offer.title}>
          <Empty icon="lend" title={words.offer.none}>
            <Button kind="primary" onClick={make}>{words.offer.make}</Button>
          </Empty>
        </Card>
      )}
      {offers.length > 1 && (
        <Card>
          <Select label={words.offer.which} value={String(offer!.id)} onValue={setSelected}
            choices={offers.map((each) => ({ value: String(each.id), label: words.offer.named(each.id, cores(each.cores_milli), each.when) }))} />
        </Card>
      )}
      {offer && <OfferForm key={offer.id} offer={offer} machine={machine} />}
    </>
  );
}

export function MachineScreen({ id }: { id: number }) {
  const shown = machineOf(id);
  const { data: machine, problem } = useFresh(shown, true);
  return (
    <>
      <p class="back"><a href={link("lend")}>{words.back}</a></p>
      <Head title={machine ? machine.name : words.title}>
        {machine && <MachineState machine={machine} />}
        {machine?.is_mine && <Pause machine={machine} isWhole />}
      </Head>
      <ProblemNote problem={problem} />
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
