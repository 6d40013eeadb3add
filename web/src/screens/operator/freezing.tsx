// Freezes an account with a reason, and lets it go on.
import { useState } from "preact/hooks";
import { post } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { useDraft, useSubmit } from "../../core/form";
import type { Account } from "../../core/store";
import { common, operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { ask, Dialog } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toast";

const REASON_BYTES_MAX = 127;

interface FreezingProps {
  account: Account;
  onDone: () => Promise<void>;
  onClose: () => void;
}

export function Freezing({ account, onDone, onClose }: FreezingProps) {
  const [reason, setReason, clear] = useDraft(`freeze-${account.id}`, "");
  const [isChecked, setChecked] = useState(false);
  const isLong = new TextEncoder().encode(reason).length > REASON_BYTES_MAX;
  const wrong = !reason.trim() ? words.reasonMissing : isLong ? words.reasonLong(REASON_BYTES_MAX) : "";
  const freeze = async (key: string) => {
    await post("/v1/accounts/{id}/freeze", { key, path: { id: account.id }, body: { reason: reason.trim() } });
    clear();
    tell(words.frozen(account.name));
    await onDone();
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

export async function unfreeze(account: Account, onDone: () => Promise<void>): Promise<void> {
  if (!(await ask({ title: words.askUnfreeze(account.name), body: account.frozen, action: words.unfreeze }))) return;
  await post("/v1/accounts/{id}/unfreeze", { path: { id: account.id } });
  tell(words.unfrozen(account.name));
  await onDone();
}
