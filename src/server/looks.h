/*
 * Looks: what the beginning of a borrower's file looks like, told by a confined process, so that a
 * page can offer its columns. A few at a time; others wait, and only so many.
 *
 * Main thread.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdint.h>

struct server;
struct looks;
struct look;

struct looks *looks_new(struct server *server);
/* Makes its folders below that of the imports. */
MUST_CHECK int looks_open(struct looks *looks, struct error *error);
/* Ends what runs; nobody is told. NULL is fine. */
void looks_free(struct looks *looks);

/* `look` NULL with *error: INVALID when the file is not what it should be. */
typedef void looks_done(void *context, const struct look *look, const struct error *error);
/* Once, perhaps at once: UNAVAILABLE when too many wait. Name and bytes are copied. */
void looks_add(struct looks *looks, struct text name, struct text bytes, looks_done *done,
               void *context);
