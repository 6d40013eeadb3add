// A place to drop files onto, with a button for those who have no mouse to drag with.
import { useId, useState } from "preact/hooks";

interface DropProps {
  label: string;
  words: string;
  choose: string;
  hint?: string;
  error?: string;
  isMany?: boolean;
  accept?: string;
  isDisabled?: boolean;
  onFiles: (files: File[]) => void;
}

export function Drop({ label, words, choose, hint, error, isMany, accept, isDisabled, onFiles }: DropProps) {
  const [isOver, setOver] = useState(false);
  const id = useId();
  const take = (list: FileList | null | undefined) => {
    const files = [...(list ?? [])];
    if (files.length && !isDisabled) onFiles(isMany ? files : files.slice(0, 1));
  };
  return (
    <div class={`field drop${error ? " wrong" : ""}`}>
      <label for={id}>{label}</label>
      <div
        class={`place${isOver ? " over" : ""}`}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); take(event.dataTransfer?.files); }}
      >
        <span>{words}</span>
        <span class="button">
          <span aria-hidden="true">{choose}</span>
          <input id={id} type="file" multiple={isMany} accept={accept} disabled={isDisabled}
            aria-describedby={`${id}-hint`}
            onChange={(event) => { take(event.currentTarget.files); event.currentTarget.value = ""; }} />
        </span>
      </div>
      {hint && <small id={`${id}-hint`}>{hint}</small>}
      {error && <small class="error" role="alert">{error}</small>}
    </div>
  );
}
