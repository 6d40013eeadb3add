// Accounts, the newest first or those whose name begins as asked for; and those that are to stop for a while.
import { useRef, useState } from "preact/hooks";
import { get } from "../../api/client";
import { useAgain } from "../../core/fresh";
import { credits, date } from "../../core/format";
import { resourceOf } from "../../core/resource";
import { setQuery } from "../../core/router";
import type { Account } from "../../core/store";
import { common, operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Card, Empty, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { Freezing, unfreeze } from "./freezing";
import { grant } from "./granting";

const MINT = 1; // where all credits come from
const NAME = /^[a-z0-9-]{1,40}$/;
const PAGE = 50;
const READ_MAX = 500; // a page of the API
const AGAIN_MS = 10_000; // no event tells of others' accounts

interface Found {
  accounts: Account[];
  hasMore: boolean;
}

async function read(q: string, count: number): Promise<Found> {
  const accounts: Account[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(READ_MAX, count - accounts.length);
    const page = await get("/v1/accounts", { query: { limit, cursor, ...(q ? { q } : { sort: "newest" }) } });
    accounts.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && accounts.length < count);
  return { accounts, hasMore: cursor !== undefined };
}

const foundOf = resourceOf((key: string) => {
  const { q, count } = JSON.parse(key) as { q: string; count: number };
  return read(q, count);
}, []);

const isDeleted = (account: Account) => account.name.startsWith("deleted-");
const isOnes = (account: Account) => !account.is_operator && account.id !== MINT && !isDeleted(account);

const isWaiting = (account: Account) => account.grant === "waiting";

function StateOf({ account }: { account: Account }) {
  if (account.id === MINT) return <State state="" label={words.markets} />;
  if (account.is_operator) return <State state="busy" label={words.operators} />;
  if (isDeleted(account)) return <State state="" label={words.deleted} />;
  if (!account.frozen) return <State state={isWaiting(account) ? "pending" : "online"} label={isWaiting(account) ? words.waitsForGrant : words.inUse} />;
  return (
    <>
      <State state="frozen" label={common.states.frozen!} /> <span class="reason faint" title={account.frozen}>{account.frozen}</span>
    </>
  );
}

const columns = (freeze: (account: Account) => void, onDone: () => Promise<void>): readonly Column<Account>[] => [
  { name: "name", head: words.columns.name, isRowHead: true, cell: (account) => account.name },
  { name: "state", head: words.columns.state, cell: (account) => <StateOf account={account} /> },
  { name: "created", head: words.columns.created, isWideOnly: true, cell: (account) => (account.created_ms ? date(account.created_ms) : "") },
  { name: "available", head: words.columns.available, isRight: true, cell: (account) => credits(account.available_microcredits) },
  { name: "held", head: words.columns.held, isRight: true, isWideOnly: true, cell: (account) => credits(account.held_microcredits) },
  { name: "earned", head: words.columns.earned, isRight: true, isWideOnly: true, cell: (account) => credits(account.earned_microcredits) },
  { name: "act", head: words.columns.act, isRight: true,
    cell: (account) => isOnes(account) && (account.frozen
      ? <Button onClick={() => unfreeze(account, onDone)}>{words.unfreeze}</Button>
      : (
        <span class="row acts">
          {isWaiting(account) && <Button onClick={() => grant(account, onDone)}>{words.grant}</Button>}
          <Button kind="danger" onClick={() => freeze(account)}>{words.freeze}</Button>
        </span>
      )) },
];

function List({ q }: { q: string }) {
  const [count, setCount] = useState(PAGE);
  const [chosen, setChosen] = useState<Account | null>(null);
  const found = foundOf(JSON.stringify({ q, count }));
  const { data, problem } = useAgain(found, AGAIN_MS);
  const before = useRef<Found | undefined>(undefined); // stays while more is read
  const shown = data ?? before.current;
  before.current = shown;
  return (
    <>
      <ProblemNote problem={problem} />
      {!shown && !problem && <Skeleton />}
      {shown?.accounts.length === 0 && <Empty icon="search" title={words.noneSuch} />}
      {shown && shown.accounts.length > 0 && (
        <Table label={words.accounts} columns={columns(setChosen, found.refresh)} rows={shown.accounts} rowKey={(account) => account.id} isStacked />
      )}
      {shown?.hasMore && <Button isBusy={!data} onClick={() => setCount(count * 2)}>{words.more}</Button>}
      {chosen && <Freezing account={chosen} onDone={found.refresh} onClose={() => setChosen(null)} />}
    </>
  );
}

export function Accounts({ query }: { query: URLSearchParams }) {
  const find = query.get("find") ?? "";
  const q = find.trim().toLowerCase();
  return (
    <Card title={words.accounts} class="accounts">
      <Field label={words.search} hint={words.searchHint} value={find} onValue={(text) => setQuery({ find: text })}
        native={{ name: "find", type: "search", autocomplete: "off", autocapitalize: "none", spellcheck: false }} />
      {q === "" || NAME.test(q) ? <List key={q} q={q} /> : <Empty icon="search" title={words.noneSuch} />}
    </Card>
  );
}
