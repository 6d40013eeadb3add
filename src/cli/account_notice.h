/*
 * Account notice: what the owner of an account that was not used for long has to know.
 */
#pragma once

#include "base/arena.h"
#include "client/api.h"

/* NULL: nothing. That it was dormant is told for 90 days. */
const char *account_notice(struct arena *arena, const struct api_account *account, int64_t now_ms);
