/*
 * Tables: what can be asked of the market without going through its state.
 *
 *     to add a column: a line at the end of its table in tables.c, and one in the enum here
 *
 * Rows written before the column hold 0 or "". Raising the version instead would drop every table.
 *
 * The first nine show the core's state and can be built again from the events. The others are the
 * server's own: what was done under which idempotency key, what jobs left behind and showed, what
 * accounts stored.
 */
#pragma once

#include "store/store.h"

extern const struct store_schema tables_schema;

enum table {
    TABLE_ACCOUNTS,
    TABLE_GROUPS,
    TABLE_TOKENS,
    TABLE_MACHINES,
    TABLE_OFFERS,
    TABLE_JOBS,
    TABLE_JOB_SPECS,
    TABLE_LEASES,
    TABLE_STATEMENTS,
    TABLE_ANSWERS,
    TABLE_ARTIFACTS,
    TABLE_LOGS,
    TABLE_METRICS,
    TABLE_CURVES,
    TABLE_USAGE,
    TABLE_HOLDINGS,
    TABLE_TOKEN_USES,
    TABLE_PROFILES,
    TABLE_PREDICTIONS,
    TABLE_PROFILE_CHOICES,
    TABLE_OBJECTS,
    TABLE_COUNT,
};
extern const struct store_table tables[TABLE_COUNT]; /* by enum table */

enum {
    ACCOUNTS_ID,
    ACCOUNTS_NAME,
    ACCOUNTS_OPENED_MS,
    ACCOUNTS_GRANTED_MICRO,
    ACCOUNTS_EARNED_MICRO,
    ACCOUNTS_WITHHELD_MICRO,
    ACCOUNTS_HELD_MICRO,
    ACCOUNTS_EARNED_TOTAL_MICRO,
    ACCOUNTS_SPENT_TOTAL_MICRO,
    ACCOUNTS_PASSWORD, /* argon2id's string; "": none */
    ACCOUNTS_FREEZE_REASON,
    ACCOUNTS_DELETED_MS,
    ACCOUNTS_GROUP_ID,
    ACCOUNTS_GRANT_STATE,
    ACCOUNTS_TO_EARN_MICRO,
    ACCOUNTS_DORMANT_STEPS,
    ACCOUNTS_DORMANT_STEP_MS,
    ACCOUNTS_COLUMN_COUNT,
};

enum {
    GROUPS_ID,
    GROUPS_NAME,
    GROUPS_OWNER,
    GROUPS_CREATED_MS,
    GROUPS_MEMBER_COUNT,
    GROUPS_COLUMN_COUNT,
};

enum {
    TOKENS_ID,
    TOKENS_ACCOUNT,
    TOKENS_HASH,
    TOKENS_SCOPES,
    TOKENS_EXPIRES_MS,
    TOKENS_ADDED_MS,
    TOKENS_IS_REVOKED,
    TOKENS_LABEL,
    TOKENS_IS_SESSION,
    TOKENS_COLUMN_COUNT,
};

enum {
    MACHINES_ID,
    MACHINES_OWNER,
    MACHINES_NAME,
    MACHINES_GENERATION,
    MACHINES_STATE,
    MACHINES_STATE_CHANGED_MS,
    MACHINES_YIELD, /* enum machine_yield */
    MACHINES_ENROLLED_MS,
    MACHINES_CORES_MILLI,
    MACHINES_RAM_BYTES,
    MACHINES_GPUS_MILLI,
    MACHINES_DISK_BYTES,
    MACHINES_SPEED_WEIGHT_MILLI,
    MACHINES_CPU_MODEL,
    MACHINES_LABELS,
    MACHINES_OFFER_CORES_MILLI,
    MACHINES_OFFER_RAM_BYTES,
    MACHINES_OFFER_GPUS_MILLI,
    MACHINES_OFFER_DISK_BYTES,
    MACHINES_OFFER_ROLES,
    MACHINES_OFFER_IS_PAUSED,
    MACHINES_MINIMUM_CORE_MICRO,
    MACHINES_MINIMUM_RAM_MICRO,
    MACHINES_MINIMUM_GPU_MICRO,
    MACHINES_MINIMUM_DISK_MICRO,
    MACHINES_LEASED_CORES_MILLI,
    MACHINES_LEASED_RAM_BYTES,
    MACHINES_LEASE_COUNT,
    MACHINES_EARNED_MICRO,
    MACHINES_OFFER_COUNT,
    MACHINES_OFFER_STATE, /* enum offer_state, of all its offers together */
    MACHINES_OFFER_TURNS_MS,
    MACHINES_RELIABILITY_MILLI, /* of its reputation, as are the next */
    MACHINES_COMPLETED,
    MACHINES_LOST,
    MACHINES_RECLAIMED,
    MACHINES_FAILED,
    MACHINES_COMPLETED_MILLI,
    MACHINES_LOST_MILLI,
    MACHINES_RECLAIMED_MILLI,
    MACHINES_LEASED_MS,
    MACHINES_DELIVERED_MS,
    MACHINES_TICKS,
    MACHINES_IS_UNPROVEN,
    MACHINES_VERIFIED_MICRO, /* earned by verified work for others */
    MACHINES_WITHHELD_MICRO, /* of it, until it is proven */
    MACHINES_FEE_MICRO,      /* the operator's part of what was paid for it */
    MACHINES_GPU_MODEL,
    MACHINES_GPU_RAM_BYTES,
    MACHINES_BANDWIDTH_KBIT,
    MACHINES_RTT_US,
    MACHINES_RAM_BYTES_PER_S,
    MACHINES_AVAILABILITY,     /* enum machine_availability */
    MACHINES_FREE_CORES_MILLI, /* of its open offers together, as are the next three */
    MACHINES_FREE_RAM_BYTES,
    MACHINES_FREE_GPUS_MILLI,
    MACHINES_FREE_DISK_BYTES,
    MACHINES_OFFER_LABELS, /* of its offers: words with a comma between */
    MACHINES_NETWORK,      /* enum offer_network: the most its daemon permits */
    MACHINES_IMAGES,
    MACHINES_COLUMN_COUNT,
};

enum {
    OFFERS_ID,
    OFFERS_MACHINE,
    OFFERS_OWNER,
    OFFERS_STATE, /* enum offer_state */
    OFFERS_TURNS_MS,
    OFFERS_RENEW_MS,
    OFFERS_CORES_MILLI,
    OFFERS_RAM_BYTES,
    OFFERS_GPUS_MILLI,
    OFFERS_DISK_BYTES,
    OFFERS_BANDWIDTH_KBIT,
    OFFERS_GPU_MODEL,
    OFFERS_GPU_RAM_BYTES,
    OFFERS_ROLES,
    OFFERS_MINIMUM_CORE_MICRO,
    OFFERS_MINIMUM_RAM_MICRO,
    OFFERS_MINIMUM_GPU_MICRO,
    OFFERS_MINIMUM_DISK_MICRO,
    OFFERS_MAX_LEASE_MS,
    OFFERS_SPARE,
    OFFERS_PAUSED_UNTIL_MS,
    OFFERS_NETWORK,
    OFFERS_INSTALL,
    OFFERS_LABELS,
    OFFERS_AUDIENCE,
    OFFERS_AUDIENCE_GROUP,
    OFFERS_ACCOUNTS, /* ids with a comma between */
    OFFERS_SCHEDULE,
    OFFERS_LEASED_CORES_MILLI,
    OFFERS_LEASE_COUNT,
    OFFERS_COLUMN_COUNT,
};

/* Of one offer, or of all a machine has: open when one is, paused when all are. */
enum offer_state {
    OFFER_STATE_NONE, /* a machine without an offer */
    OFFER_STATE_OPEN,
    OFFER_STATE_CLOSED, /* until its schedule opens it, or for good */
    OFFER_STATE_PAUSED,
    OFFER_STATE_COUNT,
};

enum {
    JOBS_ID,
    JOBS_ACCOUNT,
    JOBS_NAME,
    JOBS_STATE,
    JOBS_REASON,
    JOBS_NUM_NODES,
    JOBS_QUOTE_MICRO,
    JOBS_HELD_MICRO,
    JOBS_POSTED_MICRO,
    JOBS_FEE_MICRO,
    JOBS_SUBMITTED_MS,
    JOBS_STARTED_MS,
    JOBS_ENDED_MS,
    JOBS_TICKS,
    JOBS_RUNTIME, /* this and the next two: of the spec */
    JOBS_POLICY,
    JOBS_MODEL,
    JOBS_NUM_NODES_MAX,
    JOBS_WORKER_COUNT, /* with a lease that has not ended */
    JOBS_MAX_TOTAL_MICRO,
    JOBS_SUM_HELD_MICRO, /* this and the next three: of its entries, by kind */
    JOBS_SUM_POSTED_MICRO,
    JOBS_SUM_FEE_MICRO,
    JOBS_SUM_VOIDED_MICRO,
    JOBS_NOT_BEFORE_MS,
    JOBS_PREDICT,        /* of the spec; empty: classes, or it trains nothing */
    JOBS_WORKERS_WANTED, /* of one that goes by a schedule; 0: it does not */
    JOBS_COLUMN_COUNT,
};

/* A job's spec never changes: apart from the row that does with every tick. */
enum { JOB_SPECS_JOB, JOB_SPECS_SPEC, JOB_SPECS_COLUMN_COUNT };

enum {
    LEASES_ID,
    LEASES_JOB,
    LEASES_MACHINE,
    LEASES_PAYEE,
    LEASES_FENCE,
    LEASES_ROLE,
    LEASES_RANK,
    LEASES_STATE,
    LEASES_OUTCOME,
    LEASES_REASON,
    LEASES_IS_UNREACHABLE,
    LEASES_CORES_MILLI,
    LEASES_RAM_BYTES,
    LEASES_DISK_BYTES,
    LEASES_TICK_MS,
    LEASES_OFFERED_MS,
    LEASES_STARTED_MS,
    LEASES_ENDED_MS,
    LEASES_EXPIRES_MS,
    LEASES_TICKS,
    LEASES_WALL_MS,
    LEASES_POSTED_MICRO,
    LEASES_FEE_MICRO,
    LEASES_EXIT_CODE,
    LEASES_IS_REPLICA,
    LEASES_COLUMN_COUNT,
};

/* Where the entries of an account, a job or a machine are in the log: server/statement.h. */
enum {
    STATEMENTS_SUBJECT, /* its id */
    STATEMENTS_FIRST,   /* an event */
    STATEMENTS_MORE,    /* the events after it */
    STATEMENTS_COLUMN_COUNT,
};

/* Requests done under an Idempotency-Key, and what they made: a repeat shows it again. */
enum {
    ANSWERS_KEY,     /* hash of account, route and Idempotency-Key */
    ANSWERS_REQUEST, /* hash of the body */
    ANSWERS_SUBJECT,
    ANSWERS_CREATED_MS,
    ANSWERS_COLUMN_COUNT,
};

enum {
    ARTIFACTS_JOB,
    ARTIFACTS_NAME,
    ARTIFACTS_LEASE,
    ARTIFACTS_MANIFEST,
    ARTIFACTS_SIZE_BYTES,
    ARTIFACTS_CREATED_MS,
    ARTIFACTS_COLUMN_COUNT,
};

/* A lease's log in parts, each a blob. */
enum { LOGS_LEASE, LOGS_OFFSET, LOGS_SIZE, LOGS_HASH, LOGS_COLUMN_COUNT };

/* What live.c keeps of a job: what every list shows, the workers' figures in live.c's JSON, and
 * apart from them the curve, which is long. */
enum {
    METRICS_JOB,
    METRICS_ACCOUNT,
    METRICS_UPDATED_MS,
    METRICS_FIRST_STEP_MS,
    METRICS_HAS_LOSS,
    METRICS_LOSS,
    METRICS_HAS_ACCURACY,
    METRICS_TEST_ACCURACY,
    METRICS_SAMPLES,
    METRICS_GAMMA_MS,
    METRICS_WORKERS,
    METRICS_COLUMN_COUNT,
};
enum { CURVES_JOB, CURVES_JSON, CURVES_COLUMN_COUNT };

/* The chunks that an account has sent; stored_ms: or was seen to be used. */
enum {
    HOLDINGS_ACCOUNT,
    HOLDINGS_HASH,
    HOLDINGS_SIZE_BYTES, /* as sent */
    HOLDINGS_STORED_MS,
    HOLDINGS_JOB, /* whose parameter servers alone sent it; 0: others did, too */
    HOLDINGS_COLUMN_COUNT
};

/* Bytes of all its holdings together. */
enum { USAGE_ACCOUNT, USAGE_BYTES, USAGE_COLUMN_COUNT };

/* What a run showed, in profile.h's JSON; found by what is alike. */
enum {
    PROFILES_JOB,
    PROFILES_ACCOUNT,
    PROFILES_SIGNATURE,
    PROFILES_TASK,
    PROFILES_UPDATED_MS,
    PROFILES_IS_FINAL,
    PROFILES_JSON,
    PROFILES_COLUMN_COUNT,
};

/* What was foretold of a job when it was submitted, in profiles.h's JSON. */
enum {
    PREDICTIONS_JOB,
    PREDICTIONS_ACCOUNT,
    PREDICTIONS_TASK,
    PREDICTIONS_CREATED_MS,
    PREDICTIONS_JSON,
    PREDICTIONS_COLUMN_COUNT,
};

/* Accounts that said whether others may learn from their runs. */
enum { PROFILE_CHOICES_ACCOUNT, PROFILE_CHOICES_IS_SHARED, PROFILE_CHOICES_COLUMN_COUNT };

enum {
    OBJECTS_ACCOUNT,
    OBJECTS_NAME,
    OBJECTS_SIZE_BYTES,
    OBJECTS_STORED_MS, /* or when it was last found to be in use */
    OBJECTS_BLOBS,     /* their hashes, one after the other */
    OBJECTS_COLUMN_COUNT
};

/* When a token was used last, to the minute. */
enum { TOKEN_USES_TOKEN, TOKEN_USES_USED_MS, TOKEN_USES_COLUMN_COUNT };
