/*
 * Profiles: what runs showed and what was foretold of them, kept in tables, by job and by
 * signature.
 *
 * A profile belongs to the account of its job and is shown to nobody else. Others learn from it
 * only where the operator lets them and both accounts have said so. It goes after the retention,
 * when its account deletes its profiles, and with the account.
 *
 * Main thread.
 */
#pragma once

#include "server/profile.h"
#include "store/store.h"

enum {
    PROFILES_KEEP_DAYS = 180,
    PROFILES_LEARN_MAX = 64, /* runs that one recommendation learns from */
};

/* What was foretold of a job: the time from its start to its end, and all it costs. */
struct prediction_range {
    int64_t low, expected, high;
};
struct prediction_told {
    struct text rule; /* auto, cost-opt, ... */
    bool is_bound;    /* the most it may be: nobody learns from how far it was off */
    struct prediction_range time_ms;
    struct prediction_range cost_micro;
};
extern const struct json_schema prediction_schema;

/* Writes the job's profile as it is now. Failures are logged. */
void profiles_save(struct server *server, const struct live_job *live);

MUST_CHECK int profiles_find(struct server *server, struct arena *arena, uint64_t job,
                             struct profile *out_profile, bool *out_is_there, struct error *error);

/* Whom an account may learn from: the newest runs first, those of its own and, where that is
 * shared, those of others with the same task. The runs of `out` live in the arena. */
struct profiles_learnt {
    const struct profile **runs;
    size_t count;
    size_t same_count; /* of them: of this signature */
};
MUST_CHECK int profiles_learn(struct server *server, struct arena *arena, uint64_t account,
                              const struct job_signature *signature,
                              struct profiles_learnt *out_learnt, struct error *error);

/* A prediction and how it turned out. */
struct prediction_outcome {
    uint64_t job;
    struct prediction_told told;
    bool is_over; /* the run succeeded: the next two are known */
    int64_t time_ms;
    int64_t cost_micro;
};
/* NULL: nothing was foretold of the job. */
MUST_CHECK int profiles_prediction(struct server *server, struct arena *arena, uint64_t job,
                                   const struct profile *profile,
                                   const struct prediction_outcome **out_outcome,
                                   struct error *error);
void profiles_put_prediction(struct store_batch *batch, const struct profile *profile,
                             const struct prediction_told *told, int64_t now_ms);
/* The account's own that are over, of this task, the newest first; those that were bounds apart. */
struct prediction_outcomes {
    const struct prediction_outcome *items;
    size_t count;
};
MUST_CHECK int profiles_outcomes(struct server *server, struct arena *arena, uint64_t account,
                                 const char *task, struct prediction_outcomes *out_outcomes,
                                 struct error *error);

/* Whether others may learn from the account's runs, and it from theirs. */
MUST_CHECK int profiles_is_shared(struct server *server, struct arena *arena, uint64_t account,
                                  bool *out_is_shared, struct error *error);
void profiles_put_shared(struct store_batch *batch, uint64_t account, bool is_shared);

/* What is to go. A profile of a job that runs comes again. */
struct profiles_doomed {
    const uint64_t *profiles, *predictions; /* jobs */
    size_t profile_count, prediction_count;
    uint64_t choice; /* account; 0: none */
};
/* All of an account's but its choice; PROFILES_DOOMED_MAX of each at most. */
enum { PROFILES_DOOMED_MAX = 10000 };
MUST_CHECK int profiles_of_account(struct server *server, struct arena *arena, uint64_t account,
                                   struct profiles_doomed *out_doomed, struct error *error);
void profiles_delete(struct store_batch *batch, const struct profiles_doomed *doomed);

/* The account is no more: all of it goes, its choice too. */
void profiles_forget(struct server *server, uint64_t account);
/* Now and then: those past the retention go, and those of accounts that are no more; a part of them
 * each time, from the account after *cursor on. */
void profiles_sweep(struct server *server, uint64_t *cursor);
