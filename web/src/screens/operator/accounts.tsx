// All accounts by name, and those that are to stop for a while.
import { useState } from "preact/hooks";
import { all, get, post } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { useDraft, useSubmit } from "../../core/form";
import { credits, date, number } from "../../core/format";
import { resource, useResource } from "../../core/resource";
import { setQuery } from "../../core/router";
import type { Account } from "../../core/store";
import { common, operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask, Dialog } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { Card, Empty, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { tell } from "../../ui/toast";

const REASON_BYTES_MAX = 127;
const MINT = 1; // where all credits come from
const accounts = resource(() => all((cursor) => get("/v1/accounts", { query: { limit: 500, cursor } })), ["account"], { every_ms: 5000 });

function Freezing({ account, onClose }: { account: Account; onClose: () => void }) {
  const [reason, setReason, clear] = useDraft(`freeze-${account.id}`, "");
  const [isChecked, setChecked] = useState(false);
  const isLong = new TextEncoder().encode(reason).length > REASON_BYTES_MAX;
  const wrong = !reason.trim() ? words.reasonMissing : isLong ? words.reasonLong(REASON_BYTES_MAX) : "";
  const freeze = async (key: string) => {
    await post("/v1/accounts/{id}/freeze", { key, path: { id: account.id }, body: { reason: reason.trim() } });
    clear();
    tell(words.frozen(account.name));
    await accounts.refresh();
    onClose();
  };
  const { isBusy, problem, submit } = useSubmit(freeze, reason);
  const check = (event?: Event) => {
    event?.preventDefault();
    setChecked(true);
    if (!wrong) void submit();
  };
  const refused = fieldProblem(problem, "reason");
  return (
    <Dialog title={words.freezeTitle(account.name)} onClose={onClose} actions={
      <>
        <Button onClick={onClose} isDisabled={isBusy}>{common.cancel}</Button>
        <Button kind="danger" isBusy={isBusy} onClick={() => check()}>{words.freeze}</Button>
      </>
    }>
      <p>{words.freezeBody}</p>
      <form onSubmit={check} noValidate>
        <Field label={words.reason} error={(isChecked && wrong) || refused} value={reason} onValue={setReason}
          native={{ name: "reason", autocomplete: "off", required: true }} />
      </form>
      {!refused && <ProblemNote problem={problem} />}
    </Dialog>
  );
}

async function unfreeze(account: Account): Promise<void> {
  if (!(await ask({ title: words.askUnfreeze(account.name), body: account.frozen, action: words.unfreeze }))) return;
  await post("/v1/accounts/{id}/unfreeze", { path: { id: account.id } });
  tell(words.unfrozen(account.name));
  await accounts.refresh();
}

function StateOf({ account }: { account: Account }) {
  if (account.id === MINT) return <State state="" label={words.markets} />;
  if (account.is_operator) return <State state="busy" label={words.operators} />;
  if (!account.frozen) return <State state="online" label={words.inUse} />;
  return (
    <>
      <State state="frozen" label={common.states.frozen!} /> <span class="reason faint" title={account.frozen}>{account.frozen}</span>
    </>
  );
}

const columns = (freeze: (account: Account) => void): readonly Column<Account>[] => [
  { name: "name", head: words.columns.name, isRowHead: true, sort: (account) => account.name, cell: (account) => account.name },
  { name: "state", head: words.columns.state, sort: (account) => account.frozen, cell: (account) => <StateOf account={account} /> },
  { name: "created", head: words.columns.created, isWideOnly: true, sort: (account) => account.created_ms,
    cell: (account) => (account.created_ms ? date(account.created_ms) : "") },
  { name: "available", head: words.columns.available, isRight: true, sort: (account) => account.available_microcredits,
    cell: (account) => credits(account.available_microcredits) },
  { name: "held", head: words.columns.held, isRight: true, isWideOnly: true, sort: (account) => account.held_microcredits,
    cell: (account) => credits(account.held_microcredits) },
  { name: "earned", head: words.columns.earned, isRight: true, isWideOnly: true, sort: (account) => account.earned_microcredits,
    cell: (account) => credits(account.earned_microcredits) },
  { name: "act", head: words.columns.act, isRight: true,
    cell: (account) => !account.is_operator && account.id !== MINT && (account.frozen
      ? <Button onClick={() => unfreeze(account)}>{words.unfreeze}</Button>
      : <Button kind="danger" onClick={() => freeze(account)}>{words.freeze}</Button>) },
];

export function Accounts({ query }: { query: URLSearchParams }) {
  const { data, problem } = useResource(accounts);
  const [chosen, setChosen] = useState<Account | null>(null);
  const find = query.get("find") ?? "";
  const shown = data?.filter((account) => account.name.includes(find.trim().toLowerCase()));
  return (
    <Card title={words.accounts} class="accounts" action={data && <span class="faint">{words.accountCount(number(data.length))}</span>}>
      <Field label={words.search} value={find} onValue={(text) => setQuery({ find: text })}
        native={{ name: "find", type: "search", autocomplete: "off", autocapitalize: "none", spellcheck: false }} />
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {shown?.length === 0 && <Empty icon="search" title={words.noneSuch} />}
      {shown && shown.length > 0 && (
        <Table label={words.accounts} columns={columns(setChosen)} rows={shown} rowKey={(account) => account.id} isStacked />
      )}
      {chosen && <Freezing account={chosen} onClose={() => setChosen(null)} />}
    </Card>
  );
}
