// An invitation to hand on: shown once.
import { useState } from "preact/hooks";
import { post, type Schemas } from "../../api/client";
import { timeShort } from "../../core/format";
import { operator as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Card } from "../../ui/parts";

export function Invites() {
  const [made, setMade] = useState<Schemas["Invite"] | null>(null);
  const invite = async () => setMade(await post("/v1/invites"));
  return (
    <Card title={words.invites} class="invites">
      <p class="faint">{words.invitesHint}</p>
      {made && (
        <div role="status">
          <Copy text={made.invite} label={words.inviteLabel} />
          <p class="faint">{words.inviteUntil(timeShort(made.expires_ms))}</p>
        </div>
      )}
      <Button icon="plus" onClick={invite}>
        {words.invite}
      </Button>
    </Card>
  );
}
