/*
 * Lead: keeps the model of a job of functions: adds each update exactly once and publishes
 * versions.
 *
 * A model's head says which batches of the epoch it has, so that a lead that goes on where another
 * was killed adds nothing twice and leaves nothing out; updates of the former's calls lie under
 * keys of its own run, which nobody looks at any more. Versions are put once: of two leads of one
 * job the slower finds its next version taken and stops with CONFLICT.
 *
 *     models/JOB/newest   {"version": N, "before": M, "spent_micro": S}: N, named before it is put;
 *                         M until then; S, what the job may have spent
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "function/epoch_plan.h"
#include "function/object_store.h"
#include "function/work.h"

#include <stddef.h>
#include <stdint.h>

enum { LEAD_SPANS_MAX = 16384 };

struct lead_options {
    struct object_store *store; /* outlives it */
    const struct work_job *job; /* is in the store */
    const float *parameters;    /* where a job begins: version 0 */
    size_t parameter_count;
    uint64_t batch_count; /* of an epoch */
    uint64_t run;         /* grows with every lead of the job, in steps of LEAD_RUN_STEP */
    bool keeps_updates;   /* in the store, once they are in a model */
    const char *token;    /* that calls are told, of a market's store; copied; NULL: none */
};

enum { LEAD_RUN_STEP = 1024 };

struct lead;

/* Publishes version 0, or goes on from the newest there is: UNAVAILABLE, CORRUPT; INVALID when it
 * is of another model. */
MUST_CHECK int lead_open(const struct lead_options *options, struct lead **out_lead,
                         struct error *error);
void lead_free(struct lead *lead); /* NULL is fine */
DEFINE_AUTO(lead);

const float *lead_parameters(const struct lead *lead);
size_t lead_parameter_count(const struct lead *lead);
uint64_t lead_version(const struct lead *lead);   /* updates in it */
uint64_t lead_published(const struct lead *lead); /* the newest that functions can read */
uint64_t lead_epoch(const struct lead *lead);
uint64_t lead_samples(const struct lead *lead); /* behind it, of all epochs */
/* Microcredits of all leads of the job; they go with the next model, or are noted without one. */
int64_t lead_spent(const struct lead *lead);
void lead_set_spent(struct lead *lead, int64_t spent_micro);
MUST_CHECK int lead_note_spent(struct lead *lead, struct error *error);
/* What the model has of the epoch, for the plan of a lead that goes on. */
const struct batch_span *lead_covered(const struct lead *lead, size_t *out_count);

/* What a call is asked for a task of the plan, from the newest published version on. */
struct work_request lead_request(const struct lead *lead, const struct plan_task *task);

/* Of calls from now on. */
void lead_set_token(struct lead *lead, const char *token);

/* Of an update that is added from now on: W += rate U; 1 at first. */
void lead_set_rate(struct lead *lead, double rate);
/* Reads the update of a request and adds it; its head says what it covers. NOT_FOUND: there is
 * none. CORRUPT: it is none, or not of this request. Nothing is changed where it fails. */
MUST_CHECK int lead_fold(struct lead *lead, const struct work_request *request,
                         struct work_update *out_update, struct error *error);
/* Makes the model readable, if it has changed, with what the plan has covered; takes away models
 * below `oldest`, and updates that are in it. CONFLICT: another lead is at work. */
MUST_CHECK int lead_publish(struct lead *lead, const struct epoch_plan *plan, uint64_t oldest,
                            struct error *error);
/* The epoch's batches are all in; publishes the model as the first of the next. Called again after
 * it failed it goes on with that. */
MUST_CHECK int lead_end_epoch(struct lead *lead, struct error *error);
/* The job is done with: takes away all of it that the lead knows of, its description last. What is
 * left is said by the error; called again it goes on. */
MUST_CHECK int lead_clear(struct lead *lead, struct error *error);
/* The same of a job whose lead is gone: updates that no model has are not known of, and stay.
 * NOT_FOUND: there is no such job. */
MUST_CHECK int lead_forget(struct object_store *store, const char *job, struct error *error);
