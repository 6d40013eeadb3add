/*
 * Offer body: the terms of an offer as the API takes them, and what they make of an offer.
 *
 * Every field may be left out: then a new offer lends all the machine has, always, to anyone, at
 * any price, and a changed one keeps what it had. An amount may be given as a share of the
 * machine instead. Reading and expanding a schedule need files and a clock and happen before the
 * core is asked; names of accounts, shares and terms that stay need the state and are filled in on
 * the core thread.
 */
#pragma once

#include "base/arena.h"
#include "core/core.h"

enum { OFFER_BODY_LEFT_OUT = 2 };

struct offer_body {
    struct offer_terms given; /* numbers: -1 when left out */
    int64_t cores_share_milli, ram_share_milli, gpus_share_milli, disk_share_milli;
    int network, install, audience; /* -1 when left out */
    uint8_t spare;                  /* a bool; OFFER_BODY_LEFT_OUT when left out */
    struct json_array roles;        /* of struct text */
    struct json_array account_names;
    struct text group_name;
    struct text when, zone;
    struct json_array grid; /* of struct text: the week instead of `when` */
    bool has_schedule;      /* given.schedule and given.spans are set */
};

/* Of a struct price_vector. */
extern const struct json_schema offer_minimum_schema;

/* INVALID, naming the field. */
MUST_CHECK int offer_body_read(struct arena *arena, struct text json, struct offer_body *out_body,
                               struct error *error);

/* Expands `when` or `grid`, and `zone`; what one of them leaves out is taken from `known`, the
 * schedule the offer has (empty: always). Does nothing when both were left out. */
MUST_CHECK int offer_body_expand(struct arena *arena, struct offer_body *body, struct text known,
                                 int64_t now_ms, struct error *error);

/* The same for a new offer that only says when it is open; `zone` may be empty. */
MUST_CHECK int offer_body_schedule(struct arena *arena, struct text when, struct text zone,
                                   int64_t now_ms, struct offer_terms *terms, struct error *error);

/* Terms of a new offer of the machine, for all that is left out. */
struct offer_terms offer_body_defaults(const struct machine *machine);

/* Puts what was given over `terms`. Texts and arrays live in the arena or are the body's. */
MUST_CHECK int offer_body_apply(struct arena *arena, const struct offer_body *body,
                                const struct core *core, const struct machine *machine,
                                struct offer_terms *terms, struct error *error);
