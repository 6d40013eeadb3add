/*
 * Projection: keeps the query tables equal to the core's state.
 *
 * Events mark what they touch; at the end of a batch each marked thing's row is written once, from
 * the state as it is then. Belongs to the core thread (or to an audit of its own).
 */
#pragma once

#include "core/core.h"
#include "store/store.h"

struct projection;

struct projection *projection_new(void);
void projection_free(struct projection *projection); /* NULL is fine */
DEFINE_AUTO(projection);

/* Forgets marks and takes over what rows need beside the state: after a load or reload. */
void projection_reset(struct projection *projection, const struct core *core);

/* Marks what the event touched, and adds entries to statements. */
void projection_event(struct projection *projection, const struct core *core,
                      const struct event *event, struct store_batch *batch);
/* Writes the rows of everything marked. */
void projection_flush(struct projection *projection, const struct core *core,
                      struct store_batch *batch);
/* Only the statements, which no state shows: before a commit of a rebuild. */
void projection_flush_statements(struct projection *projection, struct store_batch *batch);
/* Writes the rows of everything there is, for a rebuild; `commit` is called whenever the batch is
 * large enough, commits it and clears it. */
MUST_CHECK int projection_write_all(struct projection *projection, const struct core *core,
                                    struct store_batch *batch,
                                    int (*commit)(void *context, struct error *error),
                                    void *context, struct error *error);

/* The latest a lease can run, grace included: no holder may count after it. */
int64_t projection_lease_expires_ms(const struct core *core, const struct lease *lease);

/* The rows themselves, for the audit: `out` has room for the table's columns. Texts are the
 * state's own. */
void projection_account_row(const struct core *core, const struct account *account,
                            struct store_value *out);
void projection_group_row(const struct group *group, struct store_value *out);
void projection_token_row(const struct token *token, struct store_value *out);
/* `labels` gets the text of the column offer_labels. */
enum { PROJECTION_LABELS_SIZE = MACHINE_OFFERS_MAX * (OFFER_LABELS_MAX + 1) + 1 };
void projection_machine_row(const struct projection *projection, const struct machine *machine,
                            char labels[PROJECTION_LABELS_SIZE], struct store_value *out);
/* `accounts` gets the text of the column of that name. */
enum { PROJECTION_ACCOUNTS_SIZE = OFFER_ACCOUNTS_MAX * 21 + 1 };
void projection_offer_row(const struct offer *offer, char accounts[PROJECTION_ACCOUNTS_SIZE],
                          struct store_value *out);
void projection_job_row(const struct core *core, const struct job *job, struct store_value *out);
void projection_lease_row(const struct core *core, const struct lease *lease,
                          struct store_value *out);
