// The market: what is lent and leased, where the machines are, what they cost and why.
import { cores, creditsShort, number, percent } from "../../core/format";
import { usePauses } from "../../core/pauses";
import { useResource } from "../../core/resource";
import { machines, prices, unit } from "../../core/store";
import { common, market as words } from "../../text/en";
import { Card, Figure, Figures, Head, ProblemNote, Skeleton } from "../../ui/parts";
import type { ScreenProps } from "..";
import { health } from "./data";
import { Machines } from "./machines";
import { Prices } from "./prices";
import { Rings } from "./rings";
import "./style.css";

function Now() {
  const { data: known } = useResource(health);
  const { data: price } = useResource(prices);
  const { data: list } = useResource(machines);
  if (!known || !price || !list) return <Skeleton />;
  const lent = known.resources.find((each) => each.resource === "core");
  return (
    <Figures isCard>
      <Figure label={words.now.machines} value={number(list.length)}
        note={words.now.free(list.filter((machine) => machine.availability === "free").length)} />
      <Figure label={words.now.lent} value={cores(lent?.lent_milli ?? 0)} note={words.now.weighed} />
      <Figure label={words.now.leased} value={cores(lent?.leased_milli ?? 0)}
        note={lent?.lent_milli ? words.now.share(percent(lent.leased_milli / lent.lent_milli, 0)) : undefined} />
      <Figure label={words.now.price} value={creditsShort(price.core_hour_microcredits)} unit={common.perHour(unit.value)} />
      <Figure label={words.now.fee} value={percent(price.fee_basis_points / 10_000, 2)} note={words.now.feeNote} />
    </Figures>
  );
}

export default function Market({ query }: ScreenProps) {
  const { data, problem } = useResource(machines);
  usePauses(data);
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      <Now />
      {!data && !problem && <Card title={words.machines}><Skeleton lines={4} /></Card>}
      {data && <Machines machines={data} query={query} />}
      <div class="columns market-columns">
        <Prices query={query} />
        {data && <Rings machines={data} />}
      </div>
    </>
  );
}
