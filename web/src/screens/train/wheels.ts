// Wheels that were dropped with code or beside it: packages that every machine installs, not files of the program.
import { train as texts } from "../../text/en";
import type { Picked } from "./drop";

const words = texts.wheels;
export const WHEELS_MAX = 512;

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const isWheel = (path: string) => /\.whl$/i.test(path);
const byName = (a: Picked, b: Picked) => (a.path < b.path ? -1 : 1);

// The wheels by their names alone, in one order: as they lie in the archive that the market takes.
export function apart(picked: Picked[]): { code: Picked[]; wheels: Picked[] } {
  const wheels = picked.filter(({ path }) => isWheel(path)).map(({ path, file }) => ({ path: nameOf(path), file })).sort(byName);
  const odd = wheels.find(({ path }) => !/^[^.].*-.*-.*\.whl$/.test(path));
  if (odd) throw new Error(words.odd(odd.path.slice(0, 100)));
  const twice = wheels.find(({ path }, at) => wheels[at + 1]?.path === path);
  if (twice) throw new Error(words.twice(twice.path.slice(0, 100)));
  if (wheels.length > WHEELS_MAX) throw new Error(words.many(WHEELS_MAX));
  return { code: picked.filter(({ path }) => !isWheel(path)), wheels };
}

export const hasRequirements = (paths: string[]) => paths.some((path) => /^requirements[^/]*\.txt$/i.test(path));
