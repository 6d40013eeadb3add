/* Imports, inside: one of them, and the table's part of what it does. */
#pragma once

#include "base/list.h"
#include "server/import_run.h"
#include "server/import_store.h"
#include "server/imports.h"
#include "server/server_internal.h"

#include <pthread.h>

enum import_state {
    IMPORT_WAITING,
    IMPORT_FETCHING,
    IMPORT_READING,
    IMPORT_READY,
    IMPORT_FAILED,
    IMPORT_STATE_COUNT,
};

struct import_order {
    struct list_node node; /* of imports->orders */
    struct imports *imports;
    struct arena *arena;
    uint64_t id;
    struct import_wish wish;  /* texts in the arena */
    struct manifest manifest; /* of what was sent; else it is fetched */
    uint64_t total_bytes;     /* 0: not known yet */
    bool is_folder;
    enum import_state state;
    bool is_gone;     /* nobody asks for it any more: freed once it has come to its end */
    bool is_at_work;  /* has a slot */
    size_t slot;      /* of what only so many may use at a time */
    int64_t ended_ms; /* 0: it has not */
    struct error problem;
    struct import_product product;
    size_t held_count; /* of its chunks, or on their way to be */

    /* While it is at work: */
    char folder[SERVER_PATH_SIZE];
    struct import_progress progress;
    struct import_run *run;
    int progress_fd;       /* of one that is fetched; -1: none */
    struct buffer request; /* for who fetches it; has secrets */
    pthread_t thread;
    bool has_thread, is_joined;
    int (*step)(struct import_order *order, struct error *error); /* on the thread */
    void (*then)(struct import_order *order);                     /* after it went well */
    struct error step_error;
    bool has_failed; /* the step */
};

struct imports {
    struct server *server;
    struct list orders; /* in the order they came */
    size_t count;
    uint64_t next_id;
    bool is_slot_taken[IMPORTS_READ_MAX];
    bool is_stopping;
    struct loop_timer *timer; /* forgets the old */
    char folder[SERVER_PATH_SIZE];
};

/* Takes a slot and begins. */
void import_order_begin(struct import_order *order, size_t slot);
/* Ends what it does; imports_ended comes when that is done, perhaps at once. */
void import_order_stop(struct import_order *order);
/* At the market's end: joins and kills. */
void import_order_abandon(struct import_order *order);
void import_order_free(struct import_order *order);

/* The table's: it has come to its end and let go of its slot. */
void imports_ended(struct import_order *order);
