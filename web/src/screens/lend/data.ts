// What the screen of one machine shows.
import { useEffect, useState } from "preact/hooks";
import { get, type Schemas } from "../../api/client";
import { hear, type Events } from "../../core/live";
import { resourceOf } from "../../core/resource";
import type { Machine } from "../../core/store";

type Live = NonNullable<Machine["live"]>;

// What the machine says of itself, as of its last heartbeat; undefined while it is away.
export function useHeartbeat(machine: Machine): Live | undefined {
  const [beat, setBeat] = useState<Events["heartbeat"]>();
  useEffect(() => hear("heartbeat", (events) => {
    const last = events.filter((event) => event.machine === machine.id).at(-1);
    if (last) setBeat(last);
  }), [machine.id]);
  return machine.live && beat && beat.heard_ms > machine.live.heard_ms ? { ...machine.live, ...beat } : machine.live;
}

export type LentOffer = Schemas["LentOffer"];
export type Lease = Schemas["Lease"];
export type Bucket = "hour" | "day";

export const machineOf = resourceOf((id: number) => get("/v1/machines/{id}", { path: { id } }), ["machines", "leases"]);
export const offersOf = resourceOf(
  (id: number) => get("/v1/machines/{id}/offers", { path: { id }, query: { limit: 50 } }),
  ["machines"],
  { every_ms: 2000 },
);
export const leasesOf = resourceOf(
  (id: number) => get("/v1/machines/{id}/leases", { path: { id }, query: { state: "running", limit: 100 } }),
  ["leases"],
);
// By "ID hour" or "ID day": days begin at the viewer's midnight.
export const earningsOf = resourceOf(
  (key: string) => {
    const [id, bucket] = key.split(" ") as [string, Bucket];
    const offset_ms = -new Date().getTimezoneOffset() * 60_000;
    return get("/v1/machines/{id}/earnings", { path: { id: Number(id) }, query: { bucket, offset_ms } });
  },
  ["entries"],
  { every_ms: 1000 },
);
