/*
 * Import windows: rows of a table in the order of time, as sequences to forecast from.
 */
#pragma once

#include "train/import.h"

/*
 * Every `window` rows that follow one another become one record, [window, width + 1]: the columns,
 * and the target's own values behind them. It is to tell the target `ahead` rows after its last.
 * The last tenth (at most IMPORT_TEST_ROWS_MAX) is the test: nothing of what it tells trains.
 * INVALID: no rows of numbers that tell a number, or too few.
 */
MUST_CHECK int import_make_windows(struct import *import, uint32_t window, uint32_t ahead,
                                   struct error *error);
