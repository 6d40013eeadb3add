// An invitation to hand on: shown once, and made once however often the market has to be asked.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import { useSubmit } from "../../core/form";
import { timeShort } from "../../core/format";
import { operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Card, ProblemNote } from "../../ui/parts";

export function Invites() {
  const [made, setMade] = useState<Schemas["Invite"] | null>(null);
  const { isBusy, problem, submit } = useSubmit(async (key) => setMade(await post("/v1/invites", { key })));
  return (
    <Card title={words.invites} class="invites">
      <p class="faint">{words.invitesHint}</p>
      {made && (
        <div role="status">
          <Copy text={made.invite} label={words.inviteLabel} />
          <p class="faint">{words.inviteUntil(timeShort(made.expires_ms))}</p>
        </div>
      )}
      <ProblemNote problem={problem} />
      <Button icon="plus" isBusy={isBusy} onClick={() => void submit()}>
        {words.invite}
      </Button>
    </Card>
  );
}
