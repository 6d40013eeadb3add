// What a person sets for themselves.
import { signOut } from "../../core/session";
import { account } from "../../core/store";
import { useResource } from "../../core/resource";
import { theme, themes } from "../../core/theme";
import { common, settings as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Select } from "../../ui/field";
import { Card, Head } from "../../ui/parts";
import { Delete } from "./delete";
import { GroupCard } from "./group";
import { Notifications } from "./notifications";
import { Password } from "./password";
import { Sessions } from "./sessions";
import "./style.css";
import { Tokens } from "./tokens";

export default function Settings() {
  const { data: known } = useResource(account);
  const choices = themes.map((value) => ({ value, label: common.theme[value] }));
  return (
    <>
      <Head title={words.title} />
      <div class="pair">
        <Card title={words.appearance}>
          <Select label={common.theme.label} hint={words.themeHint} value={theme.value} choices={choices}
            onValue={(value) => (theme.value = value)} />
        </Card>
        <Card title={words.account}>
          <p>
            {words.signedInAs} <strong>{known?.name}</strong>
          </p>
          <Button icon="signOut" onClick={signOut}>
            {common.signOut}
          </Button>
        </Card>
      </div>
      <Notifications />
      {known && <Password known={known} />}
      <Sessions />
      {known && <GroupCard known={known} />}
      <Tokens />
      {known && <Delete known={known} />}
    </>
  );
}
