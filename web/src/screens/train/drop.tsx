// A place to drop files and folders onto, with buttons for those who have no mouse to drag with.
import { useId, useState } from "preact/hooks";
import { withSubject } from "../../ui/field";

export interface Picked {
  path: string; // within the folder that was chosen
  file: File;
}

interface DropProps {
  label: string;
  words: string;
  choose: string;
  chooseFolder?: string; // with this, several files and whole folders may come
  hint?: string;
  error?: string;
  isDisabled?: boolean;
  onPicked: (picked: Picked[], folder: string) => void; // the folder they lay in, if they were one
  onFailure: (failure: Error) => void;
}

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((done, fail) => entry.file(done, fail));
const someOf = (reader: FileSystemDirectoryReader) => new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));

async function within(entry: FileSystemEntry, before: string): Promise<Picked[]> {
  const path = `${before}${entry.name}`;
  if (entry.isFile) return [{ path, file: await fileOf(entry as FileSystemFileEntry) }];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: Picked[] = [];
  // A folder is told a hundred at a time, until it says nothing more.
  for (let some = await someOf(reader); some.length; some = await someOf(reader))
    for (const each of some) found.push(...(await within(each, `${path}/`)));
  return found;
}

const isKept = ({ path }: Picked) => !/(^|\/)(\.git\/|\.DS_Store$)/.test(path);
// One folder that was chosen is the working folder itself.
const inside = (picked: Picked[]) => picked.map(({ path, file }) => ({ path: path.slice(path.indexOf("/") + 1), file })).filter(isKept);

interface Found {
  picked: Picked[];
  folder: string;
}

async function dropped(transfer: DataTransfer): Promise<Found> {
  // All at once: after the first await the browser has emptied the list. What a program drops is a file without an entry.
  const items = [...transfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const pickedOf = async (item: FileSystemEntry | File | null): Promise<Picked[]> =>
    item instanceof File ? [{ path: item.name, file: item }] : item ? within(item, "") : [];
  const found = (await Promise.all(items.map(pickedOf))).flat();
  const [first] = items;
  const isFolder = items.length === 1 && first && !(first instanceof File) && first.isDirectory;
  return isFolder ? { picked: inside(found), folder: first.name } : { picked: found.filter(isKept), folder: "" };
}

function chosen(list: FileList | null): Found {
  const files = [...(list ?? [])];
  const within = files[0]?.webkitRelativePath;
  if (!within) return { picked: files.map((file) => ({ path: file.name, file })), folder: "" };
  return { picked: inside(files.map((file) => ({ path: file.webkitRelativePath, file }))), folder: within.slice(0, within.indexOf("/")) };
}

export function Drop({ label, words, choose, chooseFolder, hint, error, isDisabled, onPicked, onFailure }: DropProps) {
  const [isOver, setOver] = useState(false);
  const id = useId();
  const isMany = chooseFolder !== undefined;
  const take = ({ picked, folder }: Found) => {
    if (picked.length && !isDisabled) onPicked(isMany ? picked : picked.slice(0, 1), folder);
  };
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const button = (told: string, folder: boolean) => (
    <span class={`button${isDisabled ? " disabled" : ""}`}>
      <span aria-hidden="true">{told}</span>
      <input id={folder ? undefined : id} type="file" multiple={isMany} disabled={isDisabled} aria-describedby={described}
        aria-label={folder ? `${label}: ${told}` : undefined} {...(folder ? { webkitdirectory: true } : {})}
        onChange={(event) => { take(chosen(event.currentTarget.files)); event.currentTarget.value = ""; }} />
    </span>
  );
  return (
    <div class={`field drop${error ? " wrong" : ""}`}>
      <label for={id}>{label}</label>
      <div
        class={`place${isOver ? " over" : ""}`}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); dropped(event.dataTransfer!).then(take, onFailure); }}
      >
        <span>{words}</span>
        {button(choose, false)}
        {chooseFolder && button(chooseFolder, true)}
      </div>
      {hint && <small id={`${id}-hint`}>{hint}</small>}
      {error && <small id={`${id}-error`} class="error" role="alert">{withSubject(label, error)}</small>}
    </div>
  );
}
