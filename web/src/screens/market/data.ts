// What the market screen shows beside machines and prices.
import { all, get, type Schemas } from "../../api/client";
import { resource, resourceOf } from "../../core/resource";

export type Prices = Schemas["Prices"];
export type PriceSlot = Schemas["PriceSlot"];
export const resources = ["core", "ram", "gpu", "disk"] as const;
export type Priced = (typeof resources)[number];

export const health = resource(() => get("/v1/market"), ["machines"], { every_ms: 5000 });
// Machines that give unsold time away, by an offer that is open.
export const spare = resource(
  async () => {
    const offers = await all((cursor) => get("/v1/offers", { query: { spare: true, limit: 500, cursor } }));
    return new Set(offers.filter((offer) => offer.state === "open").map((offer) => offer.machine));
  },
  ["machines"],
  { every_ms: (machines) => Math.max(1000, 3 * (machines?.size ?? 0)) },
);
export const storyOf = resourceOf((slot: string) => get("/v1/prices/{slot}", { path: { slot } }), ["prices"]);

const fields = {
  core: "core_hour_microcredits", ram: "ram_gib_hour_microcredits", gpu: "gpu_hour_microcredits", disk: "disk_gib_hour_microcredits",
} as const;
export const priceIn = (slot: PriceSlot, resource: Priced) => slot[fields[resource]];
export const priceNow = (prices: Prices, resource: Priced) => prices[fields[resource]];

// All slots that are known, past to forecast, by time, each once.
export function slotsOf(prices: Prices): PriceSlot[] {
  const byName = new Map([...prices.last_7_days, ...prices.slots].map((slot) => [slot.slot, slot]));
  return [...byName.values()].sort((a, b) => a.start_ms - b.start_ms);
}
