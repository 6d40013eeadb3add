// Tokens and sessions: no event tells of them, so they are read again after each change.
import { all, get, type Schemas } from "../../api/client";
import { resource } from "../../core/resource";

export type Token = Schemas["Token"];

export const tokens = resource(() => all((cursor) => get("/v1/tokens", { query: { limit: 500, cursor } })), []);
export const sessions = resource(() => all((cursor) => get("/v1/sessions", { query: { limit: 500, cursor } })), []);
