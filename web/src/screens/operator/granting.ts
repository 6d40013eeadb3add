// The first credits of an account that waits for them, before its turn.
import { newKey, post } from "../../api/client";
import { creditsShort } from "../../core/format";
import { server, unit, type Account } from "../../core/store";
import { operator as words } from "../../text/en";
import { ask } from "../../ui/dialog";
import { tell } from "../../ui/toast";

export async function grant(account: Account, onDone: () => Promise<void>): Promise<void> {
  const amount = `${creditsShort(server.data.value?.grant_microcredits ?? 0)} ${unit.value}`;
  if (!(await ask({ title: words.askGrant(account.name), body: words.grantBody(amount), action: words.grant }))) return;
  const given = await post("/v1/accounts/{id}/grant", { key: newKey(), path: { id: account.id } });
  tell(words.granted(account.name, `${creditsShort(given.available_microcredits)} ${unit.value}`));
  await onDone();
}
