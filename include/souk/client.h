/*
 * libsouk's client: jobs on a market, from a program.
 *
 * A job is told of as in a job file (docs/job-file.md): YAML, or JSON, which is YAML too. What a
 * market answers is handed over as JSON; docs/openapi/openapi.json has its fields.
 *
 * A souk_client may be used by several threads at once. Calls that take long (submit, fetch) can be
 * ended by another thread through `stop`; a souk_follow by souk_follow_stop.
 */
#ifndef SOUK_CLIENT_H
#define SOUK_CLIENT_H

#include <souk/library.h>

#ifdef __cplusplus
extern "C" {
#endif

struct souk_client;

/* What is NULL is taken from SOUK_SERVER, SOUK_TOKEN and SOUK_FINGERPRINT, else from the files that
 * `souk account open` and `login` wrote. No market is sent another's token: that of the files goes
 * to the files' server alone, and SOUK_TOKEN to SOUK_SERVER, or where that is not set to `server`.
 * A market signed in at before keeps its token in the file `markets`, and is sent that one.
 * The same holds for fingerprints. Without a token only what is public can be asked for. */
struct souk_connect_options {
    size_t size;
    const char *server;      /* "https://market.example:7600" */
    const char *token;       /* of the account */
    const char *fingerprint; /* SHA-256 of the market's key as 64 hex digits: no other is trusted */
    const char *config_dir;  /* instead of ~/.config/souk */
};

/* Asks the market who it is: UNAVAILABLE when it does not answer, REFUSED when its key is another
 * or the token is not good. `options` may be NULL. */
SOUK_API int souk_client_connect(const struct souk_connect_options *options,
                                 struct souk_client **out_client, struct souk_error *error);
SOUK_API void souk_client_free(struct souk_client *client);
SOUK_API const char *souk_client_server(const struct souk_client *client);

/* ---- Jobs, before they are sent ---------------------------------------------------------------
 */

/* `yaml` NULL: the file `name` is read. Else `name` is for messages; NULL: "job". INVALID says what
 * is wrong and where: error->line and ->column; if there is more, error->problem has all of it. */
struct souk_job_text {
    size_t size;
    const char *yaml;
    const char *name;
};

/* *out_yaml (NULL: not wanted) is the same job with every field it has, as a job file. */
SOUK_API int souk_job_validate(const struct souk_job_text *job, char **out_yaml,
                               struct souk_error *error);

/* What it may cost, and whether it could start now, as JSON. Nothing is sent or held. */
SOUK_API int souk_client_quote(struct souk_client *client, const struct souk_job_text *job,
                               char **out_json, struct souk_error *error);

struct souk_submit_options {
    size_t size;
    const char *dataset_dir; /* of train.data's files; NULL: where their package puts them */
    const char *resume;      /* a checkpoint to go on from; NULL: none */
    /* Told of what takes long, and of what was sent; NULL: not wanted. */
    void (*on_note)(void *context, const char *what);
    void *context;
    const volatile int32_t
        *stop; /* ends the call with STOPPED once it is not 0; NULL: nothing does */
};

/* Sends the files and data that it names and the market lacks, then the job. Paths in it are of
 * this process's folder. Credits are held without a question: souk_client_quote tells how many.
 * Its `secrets` are taken from this process's environment without a question, also one that the
 * job names otherwise (LOG_LEVEL: ${AWS_SECRET_ACCESS_KEY}): read a job that is not yours first.
 * `options` may be NULL. */
SOUK_API int souk_client_submit(struct souk_client *client, const struct souk_job_text *job,
                                const struct souk_submit_options *options, uint64_t *out_job,
                                struct souk_error *error);

/* ---- Jobs in the market -----------------------------------------------------------------------
 */

/* {"items":[...]}: the newest `count_max`. */
SOUK_API int souk_client_jobs(struct souk_client *client, size_t count_max, char **out_json,
                              struct souk_error *error);
SOUK_API int souk_client_job(struct souk_client *client, uint64_t job, char **out_json,
                             struct souk_error *error);
SOUK_API int souk_client_cancel(struct souk_client *client, uint64_t job, char **out_json,
                                struct souk_error *error);
/* Anything else that can be read: "/v1/account", "/v1/jobs/7/bill", "/v1/jobs/7/metrics". */
SOUK_API int souk_client_get(struct souk_client *client, const char *path, char **out_json,
                             struct souk_error *error);

/* Until the job has ended, well or not; *out_json (NULL: not wanted) is the job then. TIMED_OUT
 * after `timeout_ms`; -1: never. */
SOUK_API int souk_client_wait(struct souk_client *client, uint64_t job, int64_t timeout_ms,
                              char **out_json, struct souk_error *error);

struct souk_fetch_options {
    size_t size;
    const char *folder;           /* it is made if need be; NULL: the current one */
    const char *name;             /* only this file; NULL: all */
    const volatile int32_t *stop; /* as of souk_submit_options */
};

/* The files that the job left; *out_json (NULL: not wanted) is the list of their paths. NOT_FOUND
 * when there are none. `options` may be NULL. */
SOUK_API int souk_client_fetch(struct souk_client *client, uint64_t job,
                               const struct souk_fetch_options *options, char **out_json,
                               struct souk_error *error);

/* ---- Following a job --------------------------------------------------------------------------
 */

enum souk_event_kind {
    SOUK_EVENT_STATE = 1,  /* the job's state is another, or its reason */
    SOUK_EVENT_LOG = 2,    /* a rank wrote something */
    SOUK_EVENT_METRIC = 4, /* a worker or the parameter server measured something */
    SOUK_EVENT_MARKET = 8, /* the market is not reached and tried again, or is reached again */
};

/* Lives until the next call with its follow. */
struct souk_event {
    int32_t kind;
    int32_t is_server; /* of a metric: the parameter server's */
    uint64_t lease;    /* 0: of the job itself */
    int64_t at_ms;     /* UTC; of a metric; of the market: since when it was not reached */
    const char *rank;  /* of a log or metric: "0", "server", "server-1", "replica"; else "" */
    const char *text;  /* of a log: what it wrote, as UTF-8; of a state: its name; of the market:
                        * "away" or "reached" */
    size_t text_size;
    const char *reason; /* of a state, and of a market that is away; else "" */
    uint64_t steps, samples, commits;
    double loss, test_accuracy; /* NaN: not known */
    double steps_per_second;    /* 0: not known */
};

struct souk_follow;

/* `kinds`: the sum of the kinds that are wanted. Logs come whole and in order, from their beginning
 * on; metrics as they are measured from now on. */
SOUK_API int souk_follow_open(struct souk_client *client, uint64_t job, int32_t kinds,
                              struct souk_follow **out_follow, struct souk_error *error);
/* 1: *out_event; 0: the job has ended and all was told; -1: TIMED_OUT after `timeout_ms` (-1:
 * never), and may be called again, STOPPED, or what went wrong. */
SOUK_API int souk_follow_next(struct souk_follow *follow, int64_t timeout_ms,
                              const struct souk_event **out_event, struct souk_error *error);
/* From any thread: souk_follow_next ends with STOPPED. The job goes on. */
SOUK_API void souk_follow_stop(struct souk_follow *follow);
/* The job as JSON once souk_follow_next was 0, else NULL; lives as long as the follow. */
SOUK_API const char *souk_follow_job(const struct souk_follow *follow);
SOUK_API void souk_follow_free(struct souk_follow *follow);

#ifdef __cplusplus
}
#endif

#endif
