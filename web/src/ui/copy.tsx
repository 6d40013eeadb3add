// A command or a secret to take elsewhere.
import { common } from "../text/en";
import { Button } from "./button";
import { tell } from "./toast";

export function Copy({ text, label }: { text: string; label: string }) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    tell(common.copied);
  };
  return (
    <div class="copy">
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      <Button icon="copy" label={common.copy} onClick={copy} />
    </div>
  );
}
