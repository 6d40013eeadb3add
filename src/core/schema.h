/*
 * Schema: the JSON fields of the structs that events and snapshots share, with their ranges.
 */
#pragma once

#include "base/json_schema.h"
#include "core/command.h"
#include "market/price_rule.h"

extern const struct json_schema schema_settings;
extern const struct json_schema schema_resources;
extern const struct json_schema schema_price;
extern const struct json_schema schema_lock;
extern const struct json_schema schema_price_inputs;
extern const struct json_schema schema_price_curve;
extern const struct json_schema schema_units;
extern const struct json_schema schema_probe;
extern const struct json_schema schema_span;
extern const struct json_schema schema_offer_terms;
extern const struct json_schema schema_wishes;
extern const struct json_schema schema_job_request;

/* Names by number, ended by NULL, for JSON_CHOICE. */
extern const char *const schema_code_kinds[];
extern const char *const schema_economies[];
extern const char *const schema_grant_states[];
extern const char *const schema_machine_states[];
extern const char *const schema_machine_yields[];
extern const char *const schema_job_states[];
extern const char *const schema_lease_states[];
extern const char *const schema_lease_outcomes[];
extern const char *const schema_lease_roles[];
extern const char *const schema_entry_kinds[];
extern const char *const schema_networks[];
extern const char *const schema_installs[];
extern const char *const schema_audiences[];
extern const char *const schema_starts[];

/* Instants end with the year 9999, so that adding any span to one cannot overflow. */
#define SCHEMA_TIME_MS_MAX MARKET_TIME_MS_MAX

/* One field each; `owner` is the struct, `member` its field. */
#define SCHEMA_ID(name_, owner, member)                                                            \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_U64, .offset = offsetof(owner, member), .is_required = true \
    }
#define SCHEMA_RANGE(name_, owner, member, minimum_, maximum_)                                     \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_I64, .offset = offsetof(owner, member),                     \
                          .is_required = true, .minimum = (minimum_), .maximum = (maximum_)        \
    }
#define SCHEMA_BITS(name_, owner, member, maximum_)                                                \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_U64, .offset = offsetof(owner, member),                     \
                          .is_required = true, .minimum = 1, .maximum = (maximum_)                 \
    }
#define SCHEMA_TIME(name_, owner, member)  SCHEMA_RANGE(name_, owner, member, 0, SCHEMA_TIME_MS_MAX)
#define SCHEMA_MICRO(name_, owner, member) SCHEMA_RANGE(name_, owner, member, 0, PRICE_MICRO_MAX)
/* Of events there are many of: not written when 0. */
#define SCHEMA_ID_OR_NONE(name_, owner, member)                                                    \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_U64, .offset = offsetof(owner, member),                     \
                          .is_zero_omitted = true                                                  \
    }
#define SCHEMA_OR_NONE(name_, owner, member, maximum_)                                             \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_I64, .offset = offsetof(owner, member),                     \
                          .maximum = (maximum_), .is_zero_omitted = true                           \
    }
#define SCHEMA_MICRO_OR_NONE(name_, owner, member)                                                 \
    SCHEMA_OR_NONE(name_, owner, member, PRICE_MICRO_MAX)
#define SCHEMA_BOOL(name_, owner, member)                                                          \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_BOOL, .offset = offsetof(owner, member),                    \
                          .is_required = true                                                      \
    }
#define SCHEMA_FLAG(name_, owner, member) /* not written when false */                             \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_BOOL, .offset = offsetof(owner, member),                    \
                          .is_zero_omitted = true                                                  \
    }
#define SCHEMA_CHARS(name_, owner, member)                                                         \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_CHARS, .offset = offsetof(owner, member),                   \
                          .is_required = true, .size_max = sizeof(((owner *)NULL)->member)         \
    }
#define SCHEMA_HEX(name_, owner, member)                                                           \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_HEX, .offset = offsetof(owner, member),                     \
                          .is_required = true, .size_max = sizeof(((owner *)NULL)->member)         \
    }
#define SCHEMA_CHOICE(name_, owner, member, choices_)                                              \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_CHOICE, .offset = offsetof(owner, member),                  \
                          .is_required = true, .choices = (choices_)                               \
    }
#define SCHEMA_OBJECT(name_, owner, member, schema_)                                               \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_OBJECT, .offset = offsetof(owner, member),                  \
                          .is_required = true, .schema = &(schema_)                                \
    }
#define SCHEMA_TEXT(name_, owner, member, size_max_)                                               \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_TEXT, .offset = offsetof(owner, member),                    \
                          .is_required = true, .size_max = (size_max_)                             \
    }
#define SCHEMA_ARRAY(name_, owner, member, schema_, count_max)                                     \
    {                                                                                              \
        JSON_NAME(name_), .kind = JSON_ARRAY, .offset = offsetof(owner, member),                   \
                          .is_required = true, .size_max = (count_max), .schema = &(schema_)       \
    }
