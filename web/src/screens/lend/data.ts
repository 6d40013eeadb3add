// What the screen of one machine shows.
import { useEffect } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { resource, resourceOf, useResource, type Resource } from "../../core/resource";
import { account } from "../../core/store";

// Heartbeats, and what a lease does and uses, are no events of the lender's: while they are looked at they are read again.
const AGAIN_MS = 2000;

export function useFresh<Value>(shown: Resource<Value>, isBusy: boolean): { data: Value | undefined; problem: Error | null } {
  useEffect(() => {
    if (shown.data.peek()) void shown.refresh();
    if (!isBusy) return;
    const timer = setInterval(() => {
      if (!document.hidden) void shown.refresh();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [shown, isBusy]);
  return useResource(shown);
}

export type LentOffer = Schemas["LentOffer"];
export type Lease = Schemas["Lease"];
export type Bucket = "hour" | "day";

export const machineOf = resourceOf((id: number) => get("/v1/machines/{id}", { path: { id } }), ["machines"], { every_ms: 1000 });
export const offersOf = resourceOf(
  (id: number) => get("/v1/machines/{id}/offers", { path: { id }, query: { limit: 50 } }),
  ["machines"],
  { every_ms: 2000 },
);
export const leasesOf = resourceOf(
  (id: number) => get("/v1/machines/{id}/leases", { path: { id }, query: { state: "running", limit: 100 } }),
  ["machines"],
  { every_ms: 1000 },
);
// By "ID hour" or "ID day": days begin at the viewer's midnight.
export const earningsOf = resourceOf(
  (key: string) => {
    const [id, bucket] = key.split(" ") as [string, Bucket];
    const offset_ms = -new Date().getTimezoneOffset() * 60_000;
    return get("/v1/machines/{id}/earnings", { path: { id: Number(id) }, query: { bucket, offset_ms } });
  },
  ["entries"],
  { every_ms: 3000 },
);
// null: in none.
export const myGroup = resource(async () => {
  const own = account.data.peek() ?? (await get("/v1/account"));
  return own.group ? get("/v1/account/group") : null;
}, ["account"]);
