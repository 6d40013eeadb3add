// Balances, a gift to another account, and the statement.
import { credits } from "../../core/format";
import { useResource } from "../../core/resource";
import { account, unit } from "../../core/store";
import { wallet as words } from "../../text/en";
import { Figure, Figures, Head, ProblemNote } from "../../ui/parts";
import type { ScreenProps } from "..";
import { StatementCard } from "./statement";
import "./style.css";
import { Transfer } from "./transfer";

export default function Wallet({ query }: ScreenProps) {
  const { data: known, problem } = useResource(account);
  return (
    <>
      <Head title={words.title} />
      <ProblemNote problem={problem} />
      {known && (
        <Figures isCard>
          <Figure label={words.available} value={credits(known.available_microcredits)} unit={unit.value} />
          <Figure label={words.held} value={credits(known.held_microcredits)} />
          <Figure label={words.spent} value={credits(known.spent_microcredits)} />
          <Figure label={words.earned} value={credits(known.earned_microcredits)} />
          {known.withheld_microcredits > 0 && <Figure label={words.withheld} value={credits(known.withheld_microcredits)} />}
        </Figures>
      )}
      {known && <StatementCard owner={known.id} query={query} />}
      {known && <Transfer known={known} />}
    </>
  );
}
