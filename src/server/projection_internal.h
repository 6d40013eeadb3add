/* What projection.c, projection_rows.c and projection_offer.c share. */
#pragma once

#include "server/projection.h"

/* Paid to the machine's owner for all its leases, fees taken off. */
struct machine_sums {
    int64_t earned_micro; /* paid to its owner */
    int64_t fee_micro;    /* and to the operator beside it */
};
struct machine_sums projection_paid(const struct projection *projection, uint64_t machine);

/* The columns of a machine's row that tell of all its offers together. */
void projection_machine_offers(const struct machine *machine, char labels[PROJECTION_LABELS_SIZE],
                               struct store_value *out);
