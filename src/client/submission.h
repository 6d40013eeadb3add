/*
 * Submission: the way of a job from this machine into the market: what it may cost, the upload of
 * what the market lacks, the job itself.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "client/api.h"
#include "client/bundle.h"
#include "client/client.h"
#include "client/source.h"
#include "runtime/job_spec.h"

struct submission_options {
    const char *dataset_dir; /* of train.data's files; NULL: where their package puts them */
    const char *resume;      /* a checkpoint to go on from; NULL: none */
    bool is_serving;         /* stays until the job ends: its data can be had from here */
    /* Told of what takes long, and of what was sent; may be NULL. */
    void (*on_note)(void *context, const char *what);
    void *context;
    bool leaves_signals; /* Ctrl-C and SIGTERM are the caller's own */
    /* Ends what is fetched once it is not 0; NULL: nothing does. */
    const volatile int32_t *stop;
};

struct submission {
    uint64_t job;
    struct text json; /* as the market answered; in the arena */
    struct bundle *bundle;
    struct source *source; /* NULL: it does not serve */
};
/* Once the job has ended, or is not waited for. */
void submission_done(struct submission *submission);
#define AUTO_SUBMISSION __attribute__((cleanup(submission_done)))

/* What is known to be wrong with the files it names, before anything is asked for. */
MUST_CHECK int submission_check_files(const struct job_spec *spec, struct error *error);
/* That, and its secrets. */
MUST_CHECK int submission_check(const struct job_spec *spec, struct error *error);

/* The job as the market is told of it, as JSON; of its secrets the names alone. */
MUST_CHECK int submission_write(const struct job_spec *spec, struct buffer *json,
                                struct error *error);

/* While machines are tried with one another it asks again. */
MUST_CHECK int submission_quote(struct arena *arena, struct client *client,
                                const struct job_spec *spec, struct api_quote *out_quote,
                                struct text *out_json, struct error *error);
/* EXHAUSTED for what the market would refuse anyway, before any data is sent. `unit` is what it
 * counts in: "credits". */
MUST_CHECK int submission_check_money(const struct job_spec *spec, const struct api_quote *quote,
                                      const char *unit, struct error *error);

/* A job of this account just like it that goes on and is a minute old at most, for one who submits
 * twice by mistake; *out_id is 0 without one. */
MUST_CHECK int submission_find_same(struct arena *arena, struct client *client,
                                    const struct job_spec *spec, uint64_t *out_id,
                                    int64_t *out_age_ms, struct error *error);

/* Fills spec->inputs. *out_submission is to be released whatever the outcome. */
MUST_CHECK int submission_send(struct arena *arena, struct client *client, struct job_spec *spec,
                               const struct submission_options *options,
                               struct submission *out_submission, struct error *error);
