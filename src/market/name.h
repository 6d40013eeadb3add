/*
 * Names of accounts and machines: 1 to 40 characters of a-z, 0-9 and '-'; and text that people
 * wrote: valid UTF-8 without control characters other than line breaks and tabs.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>

enum { MARKET_NAME_SIZE = 41 }; /* with the zero byte */

/* INVALID, saying what a `noun` may be called: "account name ...". */
MUST_CHECK int name_check(struct text name, const char *noun, struct error *error);

/* mint, operator, market: accounts the market itself has or may need; and "deleted-...", as those
 * that are gone are called. */
bool name_is_reserved(struct text name);

/* Text for people, at most `size_max` bytes of UTF-8. `line`: also plain (base/text.h), so that it
 * stands in one line of a table; for what comes in, since older markets may have kept more. */
MUST_CHECK int name_check_line(struct text text, const char *noun, size_t size_max,
                               struct error *error);
MUST_CHECK int name_check_text(struct text text, const char *noun, size_t size_max,
                               struct error *error);
