// The terms of an offer as the form has them, and what of them is sent.
import type { Schemas } from "../../api/client";
import { lend as words } from "../../text/en";
import type { LentOffer } from "./data";
import { browserZone } from "./clock";
import { RANGES_MAX, rangesOf, readWhen, wordsOf, type Week } from "./week";

export type Probe = Schemas["Probe"];
type Body = Schemas["OfferTerms"];
export const priced = ["core", "ram", "gpu", "disk"] as const;
export type Priced = (typeof priced)[number];

export interface Terms {
  cores_milli: number;
  ram_bytes: number;
  disk_bytes: number;
  gpus_milli: number;
  week: Week;
  zone: string;
  isAutomatic: boolean;
  prices: Record<Priced, string>; // per unit and hour, as typed
  spare: boolean;
  audience: LentOffer["audience"];
  accounts: string; // as typed
  group: string;
}

const MICRO = 1_000_000;
const NAMES_MAX = 64;
const namePattern = /^[a-z0-9-]{1,40}$/;
const pricePattern = /^(\d{1,6})(?:[.,](\d{1,6}))?$/;

// A price as typed in microcredits, exact; null: not a price.
export function priceOf(typed: string): number | null {
  const found = pricePattern.exec(typed.trim() || "0");
  return found ? Number(found[1]) * MICRO + Number((found[2] ?? "").padEnd(6, "0")) : null;
}

export const typedPrice = (micro: number) => (micro ? (micro / MICRO).toFixed(6).replace(/\.?0+$/, "") : "");

const namesOf = (typed: string) => typed.split(/[\s,]+/).filter(Boolean);

export function termsOf(offer: LentOffer): Terms {
  const { minimum } = offer;
  const asked = { core: minimum.core_micro ?? 0, ram: minimum.ram_micro ?? 0, gpu: minimum.gpu_micro ?? 0, disk: minimum.disk_micro ?? 0 };
  return {
    cores_milli: offer.cores_milli,
    ram_bytes: offer.ram_bytes,
    disk_bytes: offer.disk_bytes,
    gpus_milli: offer.gpus_milli,
    week: readWhen(offer.when).week,
    zone: offer.when === "always" ? browserZone() : offer.zone, // "always" is the same in every zone
    isAutomatic: priced.every((each) => asked[each] === 0),
    prices: { core: typedPrice(asked.core), ram: typedPrice(asked.ram), gpu: typedPrice(asked.gpu), disk: typedPrice(asked.disk) },
    spare: offer.spare,
    audience: offer.audience,
    accounts: offer.accounts.join(", "),
    group: offer.group,
  };
}

export type Fault = "week" | "accounts" | "group" | "prices" | Priced;

function namesFault(typed: string): string {
  const names = namesOf(typed);
  if (names.length === 0) return words.faults.noNames;
  if (names.length > NAMES_MAX) return words.faults.manyNames(NAMES_MAX);
  const wrong = names.find((name) => !namePattern.test(name));
  if (wrong !== undefined) return words.faults.name(wrong.slice(0, 60));
  return new Set(names).size < names.length ? words.faults.twice : "";
}

// What is wrong, beside the field it is about.
export function faultsOf(terms: Terms): Partial<Record<Fault, string>> {
  const found: Partial<Record<Fault, string>> = {};
  const ranges = rangesOf(terms.week).length;
  if (ranges === 0) found.week = words.faults.never;
  if (ranges > RANGES_MAX) found.week = words.faults.manyRanges(ranges, RANGES_MAX);
  if (!terms.isAutomatic) {
    for (const each of priced) if (priceOf(terms.prices[each]) === null) found[each] = words.faults.price;
    if (priced.every((each) => priceOf(terms.prices[each]) === 0)) found.prices = words.faults.noPrice;
  }
  if (terms.audience === "accounts") {
    const wrong = namesFault(terms.accounts);
    if (wrong) found.accounts = wrong;
  }
  return found;
}

function minimumOf(terms: Terms): Body["minimum"] {
  const asked = (each: Priced) => (terms.isAutomatic ? 0 : (priceOf(terms.prices[each]) ?? 0));
  return { core_micro: asked("core"), ram_micro: asked("ram"), gpu_micro: asked("gpu"), disk_micro: asked("disk") };
}

function audienceOf(terms: Terms): Body {
  if (terms.audience === "accounts") return { audience: "accounts", accounts: namesOf(terms.accounts) };
  if (terms.audience === "group") return { audience: "group", group: terms.group };
  return { audience: "anyone" };
}

// "always" is said without a zone.
const hoursBody = (when: string, zone: string): Body => (when === "always" ? { when } : { when, zone });

// Only what was changed: what somebody else changed meanwhile stays.
export function changesOf(draft: Partial<Terms>, terms: Terms): Body {
  const { cores_milli, ram_bytes, disk_bytes, gpus_milli, spare } = draft;
  return {
    ...(cores_milli === undefined ? {} : { cores_milli }),
    ...(ram_bytes === undefined ? {} : { ram_bytes }),
    ...(disk_bytes === undefined ? {} : { disk_bytes }),
    ...(gpus_milli === undefined ? {} : { gpus_milli }),
    ...(spare === undefined ? {} : { spare }),
    ...(draft.week || draft.zone ? hoursBody(wordsOf(terms.week), terms.zone) : {}),
    ...(draft.prices || draft.isAutomatic !== undefined ? { minimum: minimumOf(terms) } : {}),
    ...(draft.audience !== undefined || draft.accounts !== undefined || draft.group !== undefined ? audienceOf(terms) : {}),
  };
}

// All that an estimate depends on.
export function estimateBody(draft: Partial<Terms>, terms: Terms, offer: LentOffer): Body {
  const { cores_milli, ram_bytes, disk_bytes, gpus_milli } = terms;
  const hours = draft.week || draft.zone ? hoursBody(wordsOf(terms.week), terms.zone) : hoursBody(offer.when, offer.zone);
  return { cores_milli, ram_bytes, disk_bytes, gpus_milli, ...hours, minimum: minimumOf(terms) };
}
