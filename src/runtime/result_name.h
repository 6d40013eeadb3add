/*
 * Result names: what the files are called that a lease leaves, from its output folder to whoever
 * fetches them.
 *
 * A name is a path of parts with '/' between them, in UTF-8 without control characters. No part is
 * empty or begins with a dot, so that no path leaves the folder it is put into, and none is hidden
 * there.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>

enum {
    RESULT_NAME_SIZE_MAX = 512,  /* bytes of the path in the output folder */
    RESULT_PART_SIZE_MAX = 240,  /* "rank999-" and ".part" still fit into a file's name */
    RESULT_PREFIX_SIZE_MAX = 32, /* "rank999-", put before it by the market */
    RESULT_FILES_MAX = 1000,     /* of one lease */
    RESULT_OWN_FILES_MAX = 4,    /* besides: checkpoints, the list of what was left out */
};

#define RESULT_BYTES_MAX (UINT64_C(1) << 30) /* of one file */
/* What was left out and why, a line each; there where something was. */
#define RESULT_LEFT_OUT_NAME "souk-left-out.txt"

bool result_name_is_good(struct text name);
/* Why it is not: one clause; NULL: it is. */
const char *result_name_trouble(struct text name);
/* As the market has it, with the prefix. */
bool result_name_is_fetchable(struct text name);
bool result_name_is_left_out(struct text name);
