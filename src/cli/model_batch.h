/*
 * Model batches: large requests for predictions are answered on a thread of their own, by a model
 * of their own, so that small ones need not wait for them. One after the other, in their order.
 */
#pragma once

#include "net/loop.h"
#include "train/predict_json.h"

enum { MODEL_BATCH_WAITING_MAX = 16 };

/* On the loop's thread. The answer may be taken; or `failure` says why there is none. */
typedef void model_batch_done(void *context, uint64_t request, struct buffer *answer,
                              const struct error *failure);

struct model_batches_options {
    struct loop *loop;
    const char *model; /* a path, read when it is opened */
    bool is_raw;
    uint32_t count_max;     /* inputs of a request */
    size_t answer_size_max; /* bytes */
    model_batch_done *done;
    void *context;
};

struct model_batches;
MUST_CHECK int model_batches_open(const struct model_batches_options *options,
                                  struct model_batches **out_batches, struct error *error);
/* Waits for the one that is computed; nobody is told any more. Before the loop goes. */
void model_batches_free(struct model_batches *batches); /* NULL is fine */
DEFINE_AUTO(model_batches);

/* Copies the body. UNAVAILABLE: MODEL_BATCH_WAITING_MAX wait already. */
MUST_CHECK int model_batches_add(struct model_batches *batches, uint64_t request,
                                 enum predict_verb verb, struct text body, struct error *error);
