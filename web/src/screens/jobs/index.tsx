// The account's jobs: #/jobs lists them, #/jobs/7 is one, #/jobs/7/logs a part of it.
import type { ScreenProps } from "..";
import { JobPage } from "./job";
import { JobList } from "./list";
import "./style.css";

export default function Jobs({ rest, query }: ScreenProps) {
  const asked = Number(rest[0]);
  if (Number.isInteger(asked) && asked > 0) return <JobPage key={asked} id={asked} tab={rest[1]} query={query} />;
  return <JobList query={query} />;
}
