/*
 * What the files that write and read snapshots share.
 */
#pragma once

#include "core/core_internal.h"
#include "core/schema.h"

/* {"NAME":{...}} and a line end. */
void snapshot_write_line(struct buffer *out, const struct json_schema *schema, const void *record);

typedef int snapshot_restore(struct core *core, const void *record, struct error *error);

/* snapshot_price.c: where prices stand, the slots that ended, what is counted in the running one */
extern const struct json_schema snapshot_prices_schema, snapshot_close_schema,
    snapshot_borrower_schema, snapshot_spread_schema;
snapshot_restore snapshot_restore_prices, snapshot_restore_close, snapshot_restore_borrower,
    snapshot_restore_spread;
uint64_t snapshot_price_line_count(const struct core *core);
void snapshot_write_prices(const struct core *core, struct buffer *out);
