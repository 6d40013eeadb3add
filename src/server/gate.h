/*
 * Gate: limits how often people ask, at the door: before a body is read or anything is looked up.
 *
 * Who has signed in is counted by account, anyone else by address block. Opening accounts and
 * signing in have limits of their own, and passwords are also counted by the name they are tried
 * for, from wherever they come. This machine's own programs are not counted by address. Chunks, the
 * page and what watches the server's health are not counted: quotas and their size bound them.
 *
 * Main thread.
 */
#pragma once

#include "server/client_address.h"
#include "server/routes.h"

struct client_address gate_client(const struct server *server, const struct http_request *request);

/* Whether it may go on; if not it was answered: 429 with Retry-After. */
bool gate_pass(struct server *server, struct http_request *request, const struct caller *caller);
/* The same for whoever could not sign in: tokens are not tried without end. */
bool gate_pass_stranger(struct server *server, struct http_request *request);
/* The same for a password that is tried for a name. */
bool gate_pass_name(struct server *server, struct http_request *request, struct text name);
/* It was the right code: it does not count as a sign-in that failed. */
void gate_forgive(struct server *server, const struct http_request *request);
/* The same for the right password of a name. */
void gate_forgive_name(struct server *server, const struct http_request *request, struct text name);

/* What the core remembers of where an account was opened; 0: not known, or not public. */
uint64_t gate_address_block(const struct server *server, const struct http_request *request);
