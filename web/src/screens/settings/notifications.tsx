// What the browser tells by itself. It is asked for when somebody turns one on, never before.
import { useState } from "preact/hooks";
import { choose, chosen, noticeKinds, permission, tellOutside, type Notice } from "../../core/notices";
import { common, notices as words } from "../../text/en";
import { Button } from "../../ui/button";
import { Toggle } from "../../ui/field";
import { Card, Note } from "../../ui/parts";

export function Notifications() {
  const [dismissals, setDismissals] = useState(0); // each draws the switch as it is: off
  const turn = async (kind: Notice, isOn: boolean) => {
    await choose(kind, isOn);
    setDismissals((count) => (isOn && permission.peek() === "default" ? count + 1 : 0));
  };
  const state = permission.value;
  const isBlocked = state === "denied" || state === "none";
  return (
    <Card title={words.title} class="notices">
      <p class="faint">{words.hint}</p>
      {state === "denied" && <Note tone="warn">{words.denied}</Note>}
      {state === "none" && <Note>{words.none}</Note>}
      {dismissals > 0 && state === "default" && <Note tone="warn">{words.dismissed}</Note>}
      <div class="toggles">
        {noticeKinds.map((kind) => (
          <Toggle key={kind} label={words.kinds[kind]} isOn={chosen.value.includes(kind)} isDisabled={isBlocked}
            onValue={(isOn) => void turn(kind, isOn)} />
        ))}
      </div>
      {chosen.value.length > 0 && (
        <Button onClick={() => tellOutside({ tag: "test", title: common.name, body: words.tested })}>{words.test}</Button>
      )}
    </Card>
  );
}
