// The group this account is in; null: in none.
import { get, type Schemas } from "../api/client";
import { resource } from "./resource";

export type Group = Schemas["Group"];

export const myGroup = resource(async (): Promise<Group | null> => {
  const own = await get("/v1/account");
  return own.group ? get("/v1/account/group") : null;
}, ["account"]);
