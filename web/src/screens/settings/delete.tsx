// Deletes the account: its name has to be typed.
import { useState } from "preact/hooks";
import { remove } from "../../api/client";
import { fieldProblem } from "../../api/problem";
import { useSubmit } from "../../core/form";
import { leave } from "../../core/session";
import { unit, type Account } from "../../core/store";
import { common, settings as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { Card, ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toast";

function Confirm({ known, onClose }: { known: Account; onClose: () => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [isChecked, setChecked] = useState(false);
  const wrong = {
    name: name === known.name ? "" : words.nameWrong,
    password: known.has_password && !password ? words.passwordMissing : "",
  };
  const end = async () => {
    await remove("/v1/account", { body: { name, ...(known.has_password ? { password } : {}) } });
    tell(words.deleted(known.name));
    leave();
  };
  const { isBusy, problem, submit } = useSubmit(end);
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (!wrong.name && !wrong.password) void submit();
  };
  const refused = { name: fieldProblem(problem, "name"), password: fieldProblem(problem, "password") };
  return (
    <Dialog title={words.deleteTitle(known.name)} onClose={onClose} actions={
      <>
        <Button onClick={onClose} isDisabled={isBusy}>{common.cancel}</Button>
        <Button kind="danger" isBusy={isBusy} onClick={() => check(new Event("submit"))}>{words.deleteYes}</Button>
      </>
    }>
      <p>{words.deleteHint(unit.value)}</p>
      <form onSubmit={check} noValidate>
        <Field label={words.typeName(known.name)} error={(isChecked && wrong.name) || refused.name} value={name} onValue={setName}
          native={{ name: "confirm", autocomplete: "off", autocapitalize: "none", spellcheck: false }} />
        {known.has_password && (
          <Field label={words.passwordNow} error={(isChecked && wrong.password) || refused.password} value={password}
            onValue={setPassword} native={{ name: "confirm-password", type: "password", autocomplete: "current-password" }} />
        )}
        {!refused.name && !refused.password && <ProblemNote problem={problem} />}
      </form>
    </Dialog>
  );
}

export function Delete({ known }: { known: Account }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Card title={words.delete} class="delete">
      <p>{words.deleteHint(unit.value)}</p>
      <Button kind="danger" onClick={() => setOpen(true)}>
        {words.deleteAct}
      </Button>
      {isOpen && <Confirm known={known} onClose={() => setOpen(false)} />}
    </Card>
  );
}
