// The account's group: made, joined by a code, left; its owner invites and takes out.
import { useState } from "preact/hooks";
import { post, remove, type Schemas } from "../../api/client";
import { fieldProblem, Problem } from "../../api/problem";
import { useDraft, useSubmit } from "../../core/form";
import { timeShort } from "../../core/format";
import { myGroup, type Group } from "../../core/group";
import { useResource } from "../../core/resource";
import { account, type Account } from "../../core/store";
import { settings as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { ask } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { Card, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { tell } from "../../ui/toast";

const NAME = /^[a-z0-9-]{1,40}$/;
const CODE = /^souk_group_[0-9a-f]+$/;

type Member = Group["members"][number];

const refresh = () => Promise.all([account.refresh(), myGroup.refresh()]);

interface OneFieldProps {
  name: "name" | "code"; // as the API calls it
  label: string;
  hint: string;
  action: string;
  wrong: (typed: string) => string;
  act: (typed: string, key: string) => Promise<unknown>;
}

function OneField({ name, label, hint, action, wrong, act }: OneFieldProps) {
  const [typed, setTyped, clear] = useDraft(`group-${name}`, "");
  const [isChecked, setChecked] = useState(false);
  const fault = wrong(typed.trim());
  const { isBusy, problem, submit } = useSubmit(async (key) => {
    await act(typed.trim(), key);
    clear();
    await refresh();
  }, typed);
  const check = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (!fault) void submit();
  };
  // There is one field: whatever the market refuses is about it.
  const refused = problem instanceof Problem ? fieldProblem(problem, name) || problem.detail : "";
  return (
    <form onSubmit={check} noValidate>
      <Field label={label} hint={hint} error={(isChecked && fault) || refused} value={typed} onValue={setTyped}
        native={{ name: `group-${name}`, autocomplete: "off", autocapitalize: "none", spellcheck: false, required: true }} />
      {!refused && <ProblemNote problem={problem} />}
      <Button type="submit" isBusy={isBusy}>{action}</Button>
    </form>
  );
}

function Outside() {
  const make = async (name: string, key: string) => {
    await post("/v1/groups", { key, body: { name } });
    tell(words.groupMade(name));
  };
  const join = async (code: string, key: string) => {
    const joined = await post("/v1/account/group", { key, body: { code } });
    tell(words.groupJoined(joined.name));
  };
  return (
    <div class="together">
      <OneField name="name" label={words.groupName} hint={words.groupNameHint} action={words.groupMake} act={make}
        wrong={(typed) => (NAME.test(typed) ? "" : words.groupNameWrong)} />
      <OneField name="code" label={words.groupCode} hint={words.groupCodeHint} action={words.groupJoin} act={join}
        wrong={(typed) => (CODE.test(typed) ? "" : words.groupCodeWrong)} />
    </div>
  );
}

async function takeOut(group: Group, member: Member): Promise<void> {
  if (!(await ask({ title: words.askTakeOut(member.name, group.name), action: words.takeOut, isDanger: true }))) return;
  await remove("/v1/account/group/members/{id}", { path: { id: member.id } });
  tell(words.takenOut(member.name));
  await myGroup.refresh();
}

async function leave(group: Group, isOwner: boolean): Promise<void> {
  const isHandedOn = isOwner && group.members.length > 1;
  const body = isHandedOn ? `${words.leaveBody} ${words.leaveOwner}` : words.leaveBody;
  if (!(await ask({ title: words.askLeave(group.name), body, action: words.groupLeave, isDanger: true }))) return;
  await remove("/v1/account/group");
  tell(words.left(group.name));
  await refresh();
}

const columns = (group: Group, own: number): readonly Column<Member>[] => [
  { name: "name", head: words.memberColumns.name, isRowHead: true, sort: (member) => member.name, cell: (member) => member.name },
  { name: "role", head: words.memberColumns.role,
    cell: (member) => (member.id === group.owner ? <State state="busy" label={words.groupOwner} /> : <State state="" label={words.groupMember} />) },
  { name: "act", head: words.memberColumns.act, isRight: true,
    cell: (member) => group.owner === own && member.id !== own && (
      <Button kind="danger" onClick={() => takeOut(group, member)}>{words.takeOut}</Button>
    ) },
];

function Inside({ group, known }: { group: Group; known: Account }) {
  const [made, setMade] = useState<Schemas["GroupCodeCreated"] | null>(null);
  const isOwner = group.owner === known.id;
  const invite = async () => setMade(await post("/v1/account/group/codes"));
  return (
    <>
      <p>{words.inGroup(group.name)}</p>
      <Table label={words.group} columns={columns(group, known.id)} rows={group.members} rowKey={(member) => member.id}
        order={{ column: "name", isDown: false }} isStacked />
      {made && (
        <div class="made" role="status">
          <Copy text={made.code} label={words.groupInviteLabel} />
          <p class="faint">{words.groupInviteUntil(timeShort(made.expires_ms))}</p>
        </div>
      )}
      <div class="row">
        {isOwner && <Button icon="plus" onClick={invite}>{words.groupInvite}</Button>}
        <Button kind="danger" onClick={() => leave(group, isOwner)}>{words.groupLeave}</Button>
        {isOwner && <span class="faint">{words.groupInviteHint}</span>}
      </div>
    </>
  );
}

export function GroupCard({ known }: { known: Account }) {
  const { data, problem } = useResource(myGroup);
  return (
    <Card title={words.group} class="group" action={data && <span class="faint">{words.groupMembers(data.members.length)}</span>}>
      <p class="faint">{words.groupHint}</p>
      <ProblemNote problem={problem} />
      {data === undefined && !problem && <Skeleton />}
      {data === null && <Outside />}
      {data && <Inside group={data} known={known} />}
    </Card>
  );
}
