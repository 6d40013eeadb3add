/*
 * API: the market's answers as structs (docs/openapi/openapi.json has the fields' meaning).
 *
 * Schemas are lenient: fields of a newer market are skipped, and a number that is null stays at
 * what the struct had. Text and lists live in the arena they were read into.
 */
#pragma once

#include "base/json_schema.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct api_account {
    uint64_t id;
    struct text name;
    int64_t available_micro;
    int64_t held_micro;
    int64_t granted_micro;
    int64_t withheld_micro;
    int64_t transferable_micro;
    int64_t earned_micro;
    int64_t spent_micro;
    struct text grant; /* "none", "waiting", "given" */
    int64_t to_earn_micro;
    uint64_t group;
    bool has_password;
    struct text frozen; /* why; empty: it is not */
    int64_t dormant_steps;
    int64_t dormant_step_ms;
};

struct api_session {
    struct api_account account;
    struct text token;
    int64_t expires_ms;
};

struct api_token {
    uint64_t id;
    struct text name;
    struct json_array scopes; /* struct text */
    int64_t created_ms;
    int64_t expires_ms;
    int64_t last_used_ms;
    bool is_current;
    struct text token; /* once, when it is made */
};

struct api_group {
    uint64_t id;
    struct text name;
    uint64_t owner;
    struct json_array members; /* struct api_member */
};

struct api_member {
    uint64_t id;
    struct text name;
};

struct api_code {
    struct text code;
    struct text invite;
    int64_t expires_ms;
};

struct api_account_created {
    struct api_account account;
    struct text token;
};

struct api_page_code {
    struct text code;
    struct text url;
};

struct api_server {
    struct text name;
    struct text version;
    struct text url;
    struct text fingerprint;
    struct text economy;           /* "credits", "karma" */
    int64_t proving_micro;         /* a machine that earned so much is proven */
    int64_t withheld_basis_points; /* of what it earns until then */
    int64_t credits_micro_per_usd; /* what a cloud's dollar counts for there; 0: it tells none */
};

struct api_machine_code {
    struct text code;
    int64_t expires_ms;
    struct text fingerprint;
};

struct api_share {
    int64_t cores_milli;
    int64_t ram_bytes;
    int64_t disk_bytes;
    int64_t gpus_milli;
    bool is_paused; /* of an offer */

    /* of a probe */
    int64_t speed_weight_milli;
    struct text cpu_model;
    struct text gpu_model;
    struct text labels;
    int64_t gpu_ram_bytes;
    int64_t bandwidth_kbit;
    int64_t rtt_us;
    int64_t ram_bytes_per_s;
    struct text network;
    bool has_images;
};

/* A machine that another was tried with. */
struct api_near {
    struct text machine_name;
    int64_t rtt_us;
};

/* What a machine's last heartbeat said; heard_ms 0: it is not linked. */
struct api_live {
    int64_t heard_ms;
    int64_t load_milli;
    int64_t free_ram_bytes;
    int64_t temperature_c;
    struct text power;
    int64_t battery_percent;
    struct json_array near; /* of struct api_near, the nearest first */
};

/* What a machine's leases came to; the milli ones are faded. */
struct api_reputation {
    int64_t reliability_milli;
    int64_t completed;
    int64_t lost;
    int64_t reclaimed;
    int64_t failed;
    int64_t completed_milli;
    int64_t lost_milli;
    int64_t reclaimed_milli;
    int64_t leased_ms;
    int64_t delivered_ms;
    int64_t ticks;
    bool is_proven;
    int64_t verified_micro; /* earned by verified work for others */
    int64_t withheld_micro; /* of it */
};

struct api_machine {
    uint64_t id;
    struct text name;
    struct text account_name;
    bool is_mine;
    struct text state;
    struct text yield; /* what its owner leaves to leases; empty: an older market does not say */
    struct text availability; /* empty: an older market does not say */
    struct text fresh_s;      /* a number; empty: not heard since the market started */
    struct api_share probe;
    struct api_share offer;
    struct api_live live;
    struct api_share free;
    struct text offer_labels;
    struct text offer_state;
    int64_t offer_state_until_ms;
    int64_t leased_cores_milli;
    uint64_t lease_count;
    int64_t earned_micro;
    struct api_reputation reputation;
};

struct api_minimum {
    int64_t core_micro;
    int64_t ram_micro;
    int64_t gpu_micro;
    int64_t disk_micro;
};

struct api_offer {
    uint64_t id;
    uint64_t machine;
    struct text machine_name;
    struct text machine_state; /* empty: an older market does not say */
    struct text state;
    int64_t state_until_ms;
    int64_t cores_milli;
    int64_t ram_bytes;
    int64_t gpus_milli;
    struct text gpu_model;
    int64_t gpu_ram_bytes;
    int64_t disk_bytes;
    int64_t bandwidth_kbit;
    struct json_array roles; /* of struct text */
    struct api_minimum minimum;
    int64_t max_lease_ms;
    bool spare;
    struct text when;
    struct text zone;
    struct text audience;
    struct json_array accounts; /* of struct text */
    struct text group;
    struct text network;
    struct text install;
    struct text labels;
    int64_t leased_cores_milli;
    uint64_t lease_count;
};

struct api_health_resource {
    struct text resource;
    int64_t lent_milli;
    int64_t leased_milli;
    int64_t largest_lender_basis_points;
};

struct api_health {
    int64_t credits_micro;
    int64_t member_count;
    int64_t active_count;
    int64_t poor_count;
    int64_t weekly_spend_micro;
    int64_t weeks_of_spend_milli;
    int64_t price_index_milli;
    int64_t waiting_machines;    /* 0: none, or an older market does not say */
    struct json_array resources; /* of struct api_health_resource */
};
extern const struct json_schema api_health_schema;

/* 0: not known. */
struct api_price {
    int64_t core_hour_micro;
    int64_t ram_gib_hour_micro;
    int64_t gpu_hour_micro;
    int64_t disk_gib_hour_micro;
};

struct api_price_slot {
    struct text slot;  /* "2026-11-14/18-24" */
    struct text state; /* ended, running, forecast */
    struct api_price price;
};

struct api_prices {
    struct api_price price; /* of the running slot */
    struct text slot;
    int64_t fee_basis_points;
    int64_t slot_offset_ms;
    struct json_array slots; /* of struct api_price_slot */
    struct api_price week;   /* the 7-day average */
};

struct api_price_part {
    struct text resource;
    struct text explanation;
};

struct api_price_story {
    struct text slot;
    struct text state;
    struct json_array resources; /* of struct api_price_part */
};

struct api_entry {
    uint64_t id;
    int64_t at_ms;
    struct text kind;
    int64_t amount_micro;
    struct text direction;
    uint64_t job;
    struct text job_name;
    uint64_t lease;
    uint64_t machine;
    struct text machine_name;
    uint64_t other_account;
    int64_t withheld_micro;
    struct text other_account_name;
    struct text memo;
};

struct api_sums {
    int64_t held_micro;
    int64_t posted_micro;
    int64_t fee_micro;
    int64_t voided_micro;
};

struct api_quote {
    int64_t wish_micro;
    int64_t wish_hourly_micro;
    bool can_start;
    struct text reason;
    struct text warning; /* what it may lack where it runs; empty: nothing */
    bool is_lacking;     /* too few machines here could ever serve it */
    bool is_measuring;   /* some may turn out to be near each other in a moment */
    struct text nearest; /* the nearest change with which it would start now */
    int64_t expected_start_ms;
    int64_t placed_micro;
    int64_t placed_hourly_micro;
    int64_t expected_micro;
    uint64_t server_machines; /* different ones; 0: not placed */
    bool has_replica_room;    /* besides the lead's machine */
    int64_t max_run_ms;
    int64_t available_micro;
    int64_t credits_micro_per_usd; /* what a cloud's dollar counts for there; 0: it has no cloud */
};

struct api_lease {
    uint64_t id;
    struct text machine_name;
    struct text role;
    uint64_t rank;
    bool is_replica; /* of the parameter server */
    struct text state;
    struct text outcome;
    uint64_t exit_code; /* of its process, once it ended */
    struct text reason;
    bool is_unreachable;
    struct text yield; /* of its machine, while it runs */
    int64_t cores_milli;
    int64_t started_ms;
    int64_t ended_ms; /* 0: not yet */
    int64_t expires_ms;
    uint64_t ticks;
    int64_t posted_micro;
    int64_t earned_micro;
    uint64_t steps;
    int64_t cpu_ms, gpu_ms;
    uint64_t commits;
    uint64_t samples;
    double steps_per_second;                  /* 0: not known */
    double loss;                              /* 0: not known */
    struct text codec;                        /* its vectors travel by; empty: not known */
    int64_t compute_ms, transfer_ms, wait_ms; /* of its time since the first step */
    uint64_t clipped, refused;                /* of its pushes: too long; refused as garbage */
};

struct api_job {
    uint64_t id;
    struct text name;
    struct text state;
    struct text reason;
    struct text runtime; /* empty: an older market does not say */
    uint64_t num_nodes;
    uint64_t num_nodes_max; /* 0: an older market does not say */
    uint64_t worker_count;
    uint64_t workers_wanted; /* of one that goes by a schedule; 0: it does not */
    struct text policy;
    struct text model;
    struct text predict; /* of the spec; empty: classes, or an older market does not say */
    int64_t created_ms;
    int64_t started_ms;
    int64_t first_step_ms;
    int64_t ended_ms;
    int64_t held_micro;
    int64_t spent_micro;
    int64_t quoted_micro;
    int64_t max_total_micro; /* 0: what the account has */
    int64_t not_before_ms;   /* pending, and booked a slot that begins then; 0: none */
    uint64_t ticks;
    double loss;          /* NaN: not known */
    double test_accuracy; /* NaN: not known */
    uint64_t samples;
    /* Of a detail: what the parameter server says of the policy; empty: not known. */
    struct text policy_in_force, policy_reason;
    uint64_t checks, checks_undecided; /* of pushes that others made again */
    struct text spec;                  /* of a detail: JSON */
    struct json_array leases;          /* of a detail: struct api_lease */
};

struct api_log_part {
    uint64_t offset;
    uint64_t next_offset;
    struct text text;
    bool is_end;
};

/* Where what a lease prints may be read from its machine. */
struct api_log_place {
    uint64_t lease;
    struct text identity;
    struct text key;             /* hex */
    struct json_array addresses; /* struct text */
};

struct api_artifact {
    struct text name;
    uint64_t size;
    struct text manifest;
};

struct api_bill_line {
    struct text machine_name;
    struct text role;
    uint64_t rank;
    bool is_replica;
    uint64_t ticks;
    int64_t billed_ms;
    int64_t posted_micro;
    int64_t earned_micro;
    int64_t fee_micro;
};

struct api_bill {
    int64_t quoted_micro;
    int64_t spent_micro;
    int64_t held_micro;
    int64_t fee_micro;
    uint64_t ticks;
    struct json_array lines; /* struct api_bill_line */
    int64_t ledger_sum_micro;
};

/* How many machines are left after a wish and all before it. */
struct api_wish {
    struct text role;
    struct text wish;
    uint64_t machines_left;
};

struct api_explain {
    struct text state;
    struct text reason;
    struct text text;
    uint64_t machine_count;
    struct json_array wishes;  /* struct api_wish; of a pending job only, like the rest */
    struct text nearest;       /* the nearest change that would place it */
    struct text warning;       /* what it may lack where it runs; empty: nothing */
    int64_t expected_start_ms; /* 0: not known */
};

struct api_missing {
    struct json_array hashes; /* struct text */
};

/* One page of a list. */
struct api_page {
    struct json_array items;
    struct text next_cursor; /* empty: the last page */
};

struct api_entry_page {
    struct api_page page; /* first */
    int64_t opening_micro, closing_micro;
    struct api_sums sums; /* of a job or machine of one's own, else 0 */
};

/* Server-sent events: which fields are set depends on the event's name. */
struct api_event {
    uint64_t job;
    uint64_t lease; /* 0: about the job itself */
    struct text role;
    int64_t at_ms;
    int64_t elapsed_ms;
    uint64_t steps;
    uint64_t samples;
    uint64_t commits;
    double loss;             /* NaN: not known */
    double steps_per_second; /* 0: not known */
    double test_accuracy;    /* NaN: not known */
    struct text state;
    struct text reason;
    int64_t spent_micro;
    int64_t held_micro;
    struct text rank; /* of a log: "0", "server" */
    uint64_t offset;
    uint64_t next_offset; /* 0: an older market does not say */
    struct text text;
};

extern const struct json_schema api_account_schema;
extern const struct json_schema api_account_created_schema;
extern const struct json_schema api_account_page_schema;
extern const struct json_schema api_session_schema;
extern const struct json_schema api_token_schema;
extern const struct json_schema api_token_page_schema;
extern const struct json_schema api_group_schema;
extern const struct json_schema api_code_schema;
extern const struct json_schema api_page_code_schema;
extern const struct json_schema api_server_schema;
extern const struct json_schema api_machine_code_schema;
extern const struct json_schema api_machine_schema;
extern const struct json_schema api_machine_page_schema;
extern const struct json_schema api_offer_schema;
extern const struct json_schema api_offer_page_schema;
extern const struct json_schema api_prices_schema;
extern const struct json_schema api_price_story_schema;
extern const struct json_schema api_entry_schema;
extern const struct json_schema api_entry_page_schema;
extern const struct json_schema api_quote_schema;
extern const struct json_schema api_job_schema;
extern const struct json_schema api_job_page_schema;
extern const struct json_schema api_log_part_schema;
extern const struct json_schema api_log_place_page_schema;
extern const struct json_schema api_artifact_page_schema;
extern const struct json_schema api_bill_schema;
extern const struct json_schema api_explain_schema;
extern const struct json_schema api_missing_schema;
extern const struct json_schema api_event_schema;
extern const struct json_schema api_log_event_schema;

/* What "not known" means in a job, lease or event, to be set before reading one. */
struct api_job api_job_unknown(void);
struct api_event api_event_unknown(void);

/* succeeded, failed or cancelled. */
bool api_job_is_final(struct text state);

/* ---- Instances at a cloud -------------------------------------------------------------------- */

struct api_cloud_instance {
    uint64_t id, machine, leases;
    struct text state, instance, type, zone, reason;
    int64_t usd_micro_per_hour, usd_micro, ends_ms;
};

struct api_cloud_order {
    uint64_t id, count, job;
    bool is_spot;
    struct text state, reason;
    int64_t usd_micro, usd_micro_max, usd_micro_per_hour_max;
    struct json_array instances; /* of struct api_cloud_instance */
};
extern const struct json_schema api_cloud_order_schema;

struct api_cloud {
    struct text region, problem, catalogue_date, catalogue_notice;
    int64_t instances_max, usd_micro_per_hour_max, usd_micro_per_hour, credits_micro_per_usd;
    int64_t hours_max; /* that an instance lives */
    int64_t listed_ms;
    uint64_t strays;
    struct json_array orders; /* of struct api_cloud_order */
};
extern const struct json_schema api_cloud_schema;
