/*
 * Statement: which entries concern an account, a job or a machine, newest or oldest first.
 *
 * An entry is in the log, once; the table `statements` only says where. A row is a page: the number
 * of an event, and the distances from it to the events after it, each as a LEB128 number. A batch
 * that moves an account's credits a hundred times writes one page for it, which is why a durable
 * transfer costs little more than its event. Pages are never changed. How entries are spread over
 * pages depends on the batches they came in; what a statement shows does not.
 */
#pragma once

#include "core/event.h"
#include "store/store.h"

struct statement_pages;

/* The pages of the batch that is being made. */
struct statement_pages *statement_pages_new(void);
void statement_pages_free(struct statement_pages *pages); /* NULL is fine */
DEFINE_AUTO(statement_pages);

/* Adds to the subject's page; one that is full goes into the batch. */
void statement_pages_add(struct statement_pages *pages, uint64_t subject, uint64_t event,
                         struct store_batch *batch);
/* Puts what is left into the batch. Before every commit. */
void statement_pages_flush(struct statement_pages *pages, struct store_batch *batch);
void statement_pages_clear(struct statement_pages *pages);

/* Calls back with each event of a page, the oldest first. CORRUPT when it is no page. */
MUST_CHECK int statement_page_read(const struct store_value *row,
                                   void (*each)(void *context, uint64_t event), void *context,
                                   struct error *error);

/* Where entries are left out, a page looks at so many at least before it is cut short: it may then
 * have fewer items than asked for, or none, and still be followed by another. */
enum { STATEMENT_LOOK_MAX = 2000 };

struct statement_query {
    uint64_t subject; /* the id of an account, a job or a machine: no two are the same */
    uint64_t account; /* entries that do not touch it are left out; 0: all are shown */
    bool is_oldest_first;
    uint64_t start;        /* the event right before the page, in its order; 0: from the end */
    int64_t balance_micro; /* of an account that is the subject: there */
    uint32_t kinds;        /* bits by enum ledger_entry_kind; 0: all */
    size_t limit;
};

struct statement_entry {
    uint64_t event;
    int64_t time_ms;
    int64_t balance_micro; /* on its far side, in the order read */
    struct ledger_entry entry;
};

struct statement {
    struct statement_entry *items; /* in the arena */
    size_t count;
    uint64_t next;         /* `start` of the page that follows; 0: that was all */
    int64_t balance_micro; /* where this page ends and that one starts */
};

MUST_CHECK int statement_read(struct store_reader *reader, struct arena *arena,
                              const struct statement_query *query, struct statement *out_statement,
                              struct error *error);

/* NOT_FOUND when the event is no entry. */
MUST_CHECK int statement_read_entry(struct store_reader *reader, uint64_t event,
                                    struct statement_entry *out_entry, struct error *error);

/* The machine whose withheld credits the entry of this event releases: the event before it says
 * that the machine is proven. 0 when that is not so. */
MUST_CHECK int statement_read_proven(struct store_reader *reader, uint64_t release,
                                     uint64_t *out_machine, struct error *error);
