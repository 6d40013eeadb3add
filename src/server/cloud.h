/*
 * Cloud: the market's hand at a cloud: starts instances that lend, and ends them.
 *
 * What is started and ended is decided by cloud/fleet.h; a thread of its own asks the cloud, one
 * call at a time; this brings the two together with the market: each instance gets a one-time code,
 * which its lender enrols with for the operator's account, an offer whose minimum is what it costs,
 * and its bill in the ledger.
 *
 * Orders are kept in the market's folder, before anything is launched for them: a market that is
 * to be started again, or is killed, leaves its instances to the next start.
 *
 * Main thread.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "market/offer.h"
#include "server/engine.h"

#include <stdbool.h>
#include <stdint.h>

struct cloud;
struct server;
struct probe;

enum { CLOUD_TYPES_MAX = 8 };

/* Reads the configuration; asks nothing yet. */
MUST_CHECK int cloud_open(struct server *server, struct cloud **out_cloud, struct error *error);
/* Takes up the orders that were kept, by what is known of their machines and jobs; once the folder
 * is this server's, before the core thread runs. CORRUPT, and whatever reading says: nothing is
 * known of the orders, so nothing may be ended. */
MUST_CHECK int cloud_adopt(struct cloud *cloud, const struct core *core, struct error *error);
/* Once the market takes requests. */
MUST_CHECK int cloud_start(struct cloud *cloud, struct error *error);
/* For good it ends all instances, waiting for it a little; else they run on. NULL is fine. */
void cloud_stop(struct cloud *cloud, bool ends_instances);
/* Once the loop is gone. NULL is fine. */
void cloud_free(struct cloud *cloud);

engine_listener cloud_listen; /* core thread */

struct cloud_wish {
    struct text types[CLOUD_TYPES_MAX]; /* the best first */
    size_t type_count;
    uint32_t count;
    bool is_spot;
    int64_t usd_micro_per_hour_max, usd_micro_max; /* 0: as the operator set it */
    uint64_t job, account;                         /* 0: none, and anyone */
    const uint8_t *key, *request; /* hashes as a call's; NULL: it is not repeated */
};
MUST_CHECK int cloud_order(struct cloud *cloud, const struct cloud_wish *wish, uint64_t *out_order,
                           struct error *error);
/* Whether it would be taken now, and what all of it costs an hour. */
MUST_CHECK int cloud_check(const struct cloud *cloud, const struct cloud_wish *wish,
                           int64_t *out_usd_micro_per_hour, struct error *error);
MUST_CHECK int cloud_stop_order(struct cloud *cloud, uint64_t order, struct error *error);
MUST_CHECK int cloud_stop_all(struct cloud *cloud, struct error *error);
/* Looks at the cloud's list now, and ends what is not ours any more. */
void cloud_sweep(struct cloud *cloud);

/* Makes of a job's request one for the whole of each machine that its spec has started, and says
 * what they cost an hour, in microcredits; 0: it has none started. REFUSED, as cloud_check,
 * cloud_job_check or cloud_job_fit. `cloud` may be NULL. The order itself is made once the job is
 * on disk. */
struct job_spec;
struct job_request;
MUST_CHECK int cloud_fit_job(const struct cloud *cloud, const struct job_spec *spec,
                             struct job_request *request, int64_t *out_hourly_micro,
                             struct error *error);

/* Of a code that one of its instances enrols with: changes the terms of its offer, in the arena,
 * and returns who it is; 0: it is none of its. `cloud` may be NULL. */
uint64_t cloud_take_code(struct cloud *cloud, struct arena *arena, struct text code,
                         const struct probe *probe, struct offer_terms *terms);
void cloud_enrolled(struct cloud *cloud, uint64_t member, uint64_t machine);

/* What that many millionths of a dollar are worth here; `cloud` NULL: as where no operator says. */
int64_t cloud_credits_micro(const struct cloud *cloud, int64_t usd_micro);
/* From what age on prices are called old; `cloud` NULL: as where no operator says. */
int64_t cloud_catalogue_age_days_max(const struct cloud *cloud);
/* Where its instances are; `cloud` NULL: "". */
struct text cloud_region(const struct cloud *cloud);

void cloud_write(const struct cloud *cloud, struct json_writer *writer);
void cloud_write_order(const struct cloud *cloud, uint64_t order, struct json_writer *writer);
