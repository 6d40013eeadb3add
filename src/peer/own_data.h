/*
 * Own data: what the owner offers to be learnt from where it lies, each "LABEL=PATH". Leases that
 * ask for peer://LABEL see it read-only; the market is told the label and never the path.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stddef.h>

/* INVALID: not LABEL=PATH, a label with other characters than letters, digits and . _ + -, one of
 * more than 35, or one that is there twice. NOT_FOUND, REFUSED: the path is not there, or leases,
 * which run as nobody, may not read it. */
MUST_CHECK int own_data_check(const char *const *items, size_t count, struct error *error);

/* NULL: none has that label. */
const char *own_data_path(const char *const *items, size_t count, struct text label);

/* "LABEL" of an item that passed the check. */
struct text own_data_label(const char *item);
