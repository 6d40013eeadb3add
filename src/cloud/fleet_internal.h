/*
 * Fleet, inside.
 */
#pragma once

#include "cloud/fleet.h"

enum {
    FLEET_STRAYS_MAX = 256, /* at a time; more are found by the next list */
    FLEET_UNCERTAIN_MAX = 8,
    FLEET_MARGIN_MS = 180000, /* from its own end to what it may cost: it boots before it counts */
    FLEET_SETTLE_MS = 120000, /* after which the cloud's list has what was started */
};

struct fleet_stray {
    char instance[FLEET_NAME_SIZE];
    int64_t pause_ms;
    uint32_t failures;
    bool is_asked;
};

struct fleet {
    struct fleet_options options;
    struct random random;
    struct fleet_order orders[FLEET_ORDERS_MAX];
    size_t order_count;
    struct fleet_member members[FLEET_MEMBERS_MAX];
    size_t member_count;
    struct fleet_stray strays[FLEET_STRAYS_MAX];
    size_t stray_count;
    uint64_t last_id;
    uint64_t stray_total;
    int64_t listed_ms, list_pause_ms; /* the last, and not before */
    uint32_t list_failures;
    bool is_listing;
};

struct fleet_order *fleet_order_of(struct fleet *fleet, uint64_t order);
struct fleet_member *fleet_member_of(struct fleet *fleet, uint64_t member);

/* fleet_member.c */
/* A second, then twice that with each failure, a minute at most; half of it to all of it. */
int64_t fleet_pause(struct fleet *fleet, uint32_t failures);
void fleet_set_state(struct fleet_member *member, enum fleet_state state, int64_t now_ms);
/* One that may run is to be ended; one that cannot is gone. */
void fleet_end_member(struct fleet_member *member, const char *reason, int64_t now_ms);
void fleet_lose_member(struct fleet *fleet, struct fleet_member *member, const char *reason,
                       int64_t now_ms);
void fleet_member_gone(struct fleet *fleet, struct fleet_member *member, int64_t now_ms);
/* NULL: there is no room. */
struct fleet_member *fleet_add_member(struct fleet *fleet, uint64_t order, int64_t now_ms);
/* What came with time: idle, too old, not booted. */
void fleet_advance(struct fleet *fleet, int64_t now_ms);
/* Gives it its part of the budget; false, and it is given up, if there is none. */
bool fleet_allow(struct fleet *fleet, struct fleet_member *member, int64_t now_ms);

void fleet_note(char out[FLEET_REASON_SIZE], const char *reason);
