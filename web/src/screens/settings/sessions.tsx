// Where the account is signed in; any other session can be ended from here.
import { remove } from "../../api/client";
import { now } from "../../core/clock";
import { relative, time } from "../../core/format";
import { useResource } from "../../core/resource";
import { settings as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Card, ProblemNote, Skeleton, State } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { tell } from "../../ui/toast";
import { sessions, type Token } from "./read";

async function end(session: Token): Promise<void> {
  await remove("/v1/sessions/{id}", { path: { id: session.id } });
  tell(words.sessionEnded);
  await sessions.refresh();
}

const columns = (): readonly Column<Token>[] => [
  { name: "name", head: words.columns.name, isRowHead: true,
    cell: (session) => (
      <>
        <span class="named">{session.name || words.session(session.id)}</span>{" "}
        {session.is_current && <State state="online" label={words.thisSession} />}
      </>
    ) },
  { name: "created", head: words.columns.created, cell: (session) => time(session.created_ms) },
  { name: "used", head: words.columns.used,
    cell: (session) => (session.last_used_ms ? relative(session.last_used_ms, Math.max(now.value, session.last_used_ms)) : words.never) },
  { name: "expires", head: words.columns.expires, cell: (session) => relative(session.expires_ms, now.value) },
  { name: "act", head: words.columns.act, isRight: true,
    cell: (session) => !session.is_current && <Button kind="danger" onClick={() => end(session)}>{words.end}</Button> },
];

export function Sessions() {
  const { data, problem } = useResource(sessions);
  return (
    <Card title={words.sessions} class="sessions">
      <p class="faint">{words.sessionsHint}</p>
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton />}
      {data && <Table label={words.sessions} columns={columns()} rows={data} rowKey={(session) => session.id} isStacked />}
    </Card>
  );
}
