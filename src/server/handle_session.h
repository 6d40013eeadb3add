/* Sessions: what signing up and signing in share. */
#pragma once

#include "server/server_internal.h"

enum { SESSION_COOKIE_MS = 12 * 3600 * 1000 };

/* Whether the request may begin a session: no browser's page of another site sent it. */
bool session_may_begin(const struct server *server, struct http_request *request);
/* Adds the cookie to the reply that will follow. */
MUST_CHECK int session_set_cookie(const struct server *server, struct http_request *request,
                                  const char *token, struct error *error);
