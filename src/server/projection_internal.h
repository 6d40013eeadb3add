/* What projection.c and projection_rows.c share. */
#pragma once

#include "server/projection.h"

/* Paid to the machine's owner for all its leases, fees taken off. */
int64_t projection_earned_micro(const struct projection *projection, uint64_t machine);
