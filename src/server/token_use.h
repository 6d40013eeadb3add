/*
 * Token use: when each token was used last, and that its account is alive.
 *
 * Noting a use changes memory only. Once a minute what was used goes to the table in one batch;
 * once a day each account that was used is a command to the core (it counts as dormant after many
 * days without). Both are bounded: what does not fit is not noted.
 *
 * Main thread.
 */
#pragma once

#include "server/routes.h"

struct token_uses;

struct token_uses *token_uses_new(struct server *server);
void token_uses_free(struct token_uses *uses); /* NULL is fine */

void token_uses_note(struct token_uses *uses, const struct caller *caller);
/* When it was used last and that is not in the table yet; 0: it was not. */
int64_t token_uses_recent_ms(const struct token_uses *uses, uint64_t token);
/* To the table. */
void token_uses_flush(struct token_uses *uses);
