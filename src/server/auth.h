/*
 * Auth: who is asking, and may they? Runs with the headers, before a body is read.
 *
 * Bearer tokens are looked up by their hash; a lease's fetch token is checked by deriving it again
 * and asking whether the lease is open. A session is a token in a cookie, with two more rules: what
 * changes something must come from a page of this server (Origin), and the cookie is SameSite.
 */
#pragma once

#include "server/routes.h"
#include "server/server_internal.h"

#define AUTH_COOKIE "souk_session"

/* Fills *out_caller. REFUSED when the token is wrong or may not; then *out_status is 401 or 403.
 * An error of the store keeps its own code and *out_status is 0. */
MUST_CHECK int auth_check(struct server *server, const struct route *route,
                          struct http_request *request, struct caller *out_caller, int *out_status,
                          struct error *error);

/* Whether an Origin header names the host the request was sent to. */
bool auth_is_same_origin(struct text origin, struct text host);
