// What lies at an address, and what its service asks for. What is filled in lives in memory alone.
import { train } from "../../text/en";
import { Field } from "../../ui/field";

const words = train.own;

export const isAddress = (url: string) => /^(https?|s3|hdfs):\/\/./.test(url);
const askedBy = (url: string): Record<string, string> | undefined => words.secrets[url.split("://", 1)[0]!];

// Those that the service asks for, as POST /v1/imports takes them.
export function credentialsOf(url: string, given: Record<string, string>): { secrets?: Record<string, string> } {
  const asked = askedBy(url) ?? {};
  const filled = Object.entries(given).filter(([name, value]) => value && name in asked);
  return filled.length ? { secrets: Object.fromEntries(filled) } : {};
}

interface CredentialsProps {
  url: string;
  given: Record<string, string>;
  onGiven: (given: Record<string, string>) => void;
}

export function Credentials({ url, given, onGiven }: CredentialsProps) {
  const asked = askedBy(url);
  if (!asked) return null;
  return (
    <form class="secrets" autocomplete="off" onSubmit={(event) => event.preventDefault()}>
      <p class="faint">{words.secretsHint}</p>
      <div class="grid">
        {Object.entries(asked).map(([name, label]) => (
          <div key={name}>
            <Field label={label} value={given[name] ?? ""} onValue={(value) => onGiven({ ...given, [name]: value })}
              native={{ name, type: /KEY|TOKEN/.test(name) ? "password" : "text", autocomplete: "off" }} />
          </div>
        ))}
      </div>
    </form>
  );
}
