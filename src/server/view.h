/*
 * View: rows as the API's JSON objects, by the names of docs/openapi/openapi.json.
 */
#pragma once

#include "base/json.h"
#include "market/offer.h"
#include "server/entry_csv.h"
#include "server/live.h"
#include "server/server_internal.h"
#include "server/statement.h"
#include "server/tables.h"

void view_account(struct json_writer *writer, const struct store_value *row);
/* As the account sees it: what it paid is negative. */
struct view_entry {
    const struct statement_entry *shown;
    uint64_t account;
    struct text job_name; /* "": none, or another's */
    uint64_t machine;     /* 0: none */
    struct text machine_name;
    struct text other_name; /* of the account on the other side */
};
uint64_t view_entry_other(const struct statement_entry *shown, uint64_t account);
void view_entry(struct json_writer *writer, const struct view_entry *view);
/* The same for a line of text/csv. */
struct entry_csv view_entry_csv(const struct view_entry *view);

struct view_token {
    const struct store_value *row;
    int64_t last_used_ms; /* 0: never */
    bool is_current;      /* the one that asks */
};
void view_token(struct json_writer *writer, const struct view_token *token);
void view_scopes(struct json_writer *writer, uint64_t scopes);
void view_roles(struct json_writer *writer, uint64_t roles);

struct view_machine {
    const struct store_value *row;
    struct text account_name;
    bool is_mine;
    int64_t paused_until_ms; /* UTC; 0: not paused, until resumed, or not the reader's */
    bool is_heard;           /* since the market started */
    int64_t fresh_s;         /* since it was last heard, when it was */
};
/* The fields of an object that the caller begins and ends. */
void view_machine(struct json_writer *writer, const struct view_machine *machine);

struct view_offer {
    const struct store_value *row;
    struct text machine_name;
    enum machine_state machine_state;
    bool is_mine;
    struct text accounts[OFFER_ACCOUNTS_MAX]; /* names */
    size_t account_count;
    struct text group_name;
};
void view_offer(struct json_writer *writer, const struct view_offer *offer);
/* "open", "closed" ... */
const char *view_offer_state_name(enum offer_state state);

struct view_job {
    const struct store_value *row;
    struct text reason;          /* of a pending one; empty: the row's */
    const struct live_job *live; /* NULL: nothing reported */
};
/* A count that most have none of: left out when 0. */
void view_count(struct json_writer *writer, const char *key, uint64_t count);
/* The fields of a job without the braces, so that JobDetail can add to them. */
void view_job_fields(struct json_writer *writer, const struct view_job *job);

struct view_lease {
    const struct store_value *row;
    struct text machine_name;
    enum machine_yield yield;       /* of its machine, while it is open */
    const struct live_worker *live; /* NULL: nothing reported */
};
void view_lease(struct json_writer *writer, const struct view_lease *lease);

/* Of the first of the scopes; there is one. */
const char *view_scope_name(uint64_t scopes);
/* Reads names back into bits. INVALID names the word that is none. */
MUST_CHECK int view_read_scopes(const struct json_array *names, uint64_t *out_scopes,
                                struct error *error);
MUST_CHECK int view_read_roles(const struct json_array *names, uint64_t *out_roles,
                               struct error *error);

/* The fields of a unit-hour's prices; null for each when they are not known (NULL). */
void view_price(struct json_writer *writer, const struct price_vector *price);
/* The fields that say which slot it is, of an object that the caller begins and ends. */
void view_slot_times(struct json_writer *writer, int64_t slot, int64_t running, int64_t offset_ms);

/* An answer being written: one call to begin, one to send. */
struct view_answer {
    struct buffer body;
    struct json_writer writer;
};
void view_answer_begin(struct view_answer *answer);
/* Sends application/json with Cache-Control: no-store and releases the answer. */
void view_answer_send(struct view_answer *answer, struct http_request *request, int status);
