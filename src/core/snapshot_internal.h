/*
 * What the files that write and read snapshots share.
 */
#pragma once

#include "core/core_internal.h"
#include "core/schema.h"

/* {"NAME":{...}} and a line end. */
void snapshot_write_line(struct buffer *out, const struct json_schema *schema, const void *record);

/* Records of one kind come in the order of ids, none beyond the counter. */
bool snapshot_follows(const struct core *core, const struct map *map, uint64_t id);
void *snapshot_copy(const void *record, size_t size);
int snapshot_misfit(struct error *error, const char *noun, uint64_t id);

typedef int snapshot_restore(struct core *core, const void *record, struct error *error);

/* snapshot_price.c: where prices stand, the slots that ended, what is counted in the running one */
extern const struct json_schema snapshot_prices_schema, snapshot_close_schema,
    snapshot_borrower_schema, snapshot_spread_schema;
snapshot_restore snapshot_restore_prices, snapshot_restore_close, snapshot_restore_borrower,
    snapshot_restore_spread;
uint64_t snapshot_price_line_count(const struct core *core);
void snapshot_write_prices(const struct core *core, struct buffer *out);

/* snapshot_account.c */
extern const struct json_schema snapshot_group_schema, snapshot_account_schema,
    snapshot_token_schema, snapshot_code_schema;
snapshot_restore snapshot_restore_group, snapshot_restore_account, snapshot_restore_token,
    snapshot_restore_code;
void snapshot_write_accounts(const struct core *core, struct buffer *out);

/* snapshot_machine.c */
extern const struct json_schema snapshot_machine_schema, snapshot_pair_schema,
    snapshot_offer_schema;
snapshot_restore snapshot_restore_machine, snapshot_restore_pair, snapshot_restore_offer;
size_t snapshot_write_pairs(struct buffer *out, const struct machine *machine);
void snapshot_write_offers(struct buffer *out, const struct machine *machine);

/* snapshot_job.c */
extern const struct json_schema snapshot_job_schema, snapshot_hold_schema, snapshot_lease_schema;
snapshot_restore snapshot_restore_job, snapshot_restore_hold, snapshot_restore_lease;
void snapshot_write_job(struct buffer *out, const struct job *job);
void snapshot_write_lease(struct buffer *out, const struct lease *lease);
