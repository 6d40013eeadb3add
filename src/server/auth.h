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

/* Where browsers come by HTTPS the name carries the prefix that lets no other host of the same
 * domain set it, so that nobody plants a session of theirs. */
#define AUTH_COOKIE        "souk_session"
#define AUTH_COOKIE_SECURE "__Host-" AUTH_COOKIE
bool auth_is_secure(const struct server *server, const struct http_request *request);
const char *auth_cookie_name(const struct server *server, const struct http_request *request);

/* Fills *out_caller. REFUSED when the token is wrong or may not; then *out_status is 401 or 403.
 * An error of the store keeps its own code and *out_status is 0. */
MUST_CHECK int auth_check(struct server *server, const struct route *route,
                          struct http_request *request, struct caller *out_caller, int *out_status,
                          struct error *error);

/* Whether what the caller makes may last until `expires_ms` (0: for ever). A token that ends makes
 * nothing that outlives it; a session may, since whoever signed in could sign in again. */
bool auth_may_last(const struct caller *caller, int64_t expires_ms);

/* Whether an Origin header names this scheme ("https") and host. */
bool auth_is_same_origin(struct text origin, struct text scheme, struct text host);
/* Whether an Origin header is that of a public URL, whatever path the URL goes on with. */
bool auth_is_origin_of(struct text origin, struct text url);
/* Whether a request's Origin header names this market as browsers reach it. */
bool auth_is_own_page(const struct server *server, struct http_request *request);
