import { useContext, useState } from "preact/hooks";
import { api, type Account, type Entry } from "./api";
import { credits, time } from "./format";
import { Unit } from "./unit";

const words: Record<Entry["kind"], string> = {
  grant: "welcome grant",
  hold: "set aside for a job",
  post: "paid for work",
  fee: "market's fee",
  void: "given back, unused",
  release: "set free",
  transfer: "given or received",
  reclaim: "back to the market",
  refund: "paid back for faulty work",
};

function sign(entry: Entry): string {
  return entry.direction === "in" ? "+" : entry.direction === "out" ? "−" : "";
}

interface WalletProps {
  account: Account;
  entries: Entry[];
  next: string | null;
}

export function Wallet({ account, entries, next }: WalletProps) {
  const unit = useContext(Unit);
  const [more, setMore] = useState<Entry[]>([]);
  const [cursor, setCursor] = useState<string | null | undefined>(undefined);
  const following = cursor === undefined ? next : cursor;
  const load = async () => {
    const page = await api.entries(following ?? undefined);
    setMore([...more, ...page.items]);
    setCursor(page.next_cursor);
  };
  const seen = new Set(entries.map((entry) => entry.id));
  const rows = [...entries, ...more.filter((entry) => !seen.has(entry.id))];
  return (
    <section aria-labelledby="wallet">
      <h2 id="wallet">Wallet</h2>
      <div class="figures card">
        <div class="figure">
          <span class="faint">available</span>
          <strong>{credits(account.available_microcredits)}</strong>
        </div>
        <div class="figure">
          <span class="faint">held for jobs</span>
          <strong>{credits(account.held_microcredits)}</strong>
        </div>
        <div class="figure">
          <span class="faint">spent</span>
          <strong>{credits(account.spent_microcredits)}</strong>
        </div>
        <div class="figure">
          <span class="faint">earned by lending</span>
          <strong>{credits(account.earned_microcredits)}</strong>
        </div>
        {account.withheld_microcredits > 0 && (
          <div class="figure">
            <span class="faint">of it withheld until proven</span>
            <strong>{credits(account.withheld_microcredits)}</strong>
          </div>
        )}
      </div>
      <div class="card scroll">
        <table>
          <thead>
            <tr>
              <th>when</th>
              <th>what</th>
              <th>job</th>
              <th class="right">{unit}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((entry) => (
              <tr key={entry.id}>
                <td>{time(entry.at_ms)}</td>
                <td>{words[entry.kind]}</td>
                <td>{entry.job || ""}</td>
                <td class={`right ${entry.direction}`}>
                  {sign(entry)}
                  {credits(Math.abs(entry.amount_microcredits))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {following && (
          <button class="link" onClick={load}>
            Show older entries
          </button>
        )}
      </div>
    </section>
  );
}
