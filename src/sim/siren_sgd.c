#include "sim/siren_sgd.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"
#include "sim/agenda.h"
#include "sim/sync_engine.h"

#include <math.h>
#include <stdlib.h>

enum {
    HIDDEN = 32,
    BATCH = 16,
    EPOCH_RECORDS = 6000,
    EPOCH_BATCHES = EPOCH_RECORDS / BATCH,
    SPANS_OF_FUNCTION = 4,
    MEASURED_RECORDS = 2000,
};
static const int64_t batch_ns = 1000000; /* of virtual time; only their ratios count */
static const double time_deviation = 0.05;
static const struct sgd_rule rule = {.lr = 0.1F};
static const double loss_max = 1000; /* of a model that diverged */

/* A span that is out. */
struct span {
    struct sync_vector *base; /* the model it started from; NULL: none is out */
    uint64_t version;         /* of that */
    uint32_t first, count;    /* batches */
};

struct siren_sgd {
    struct siren_sgd_data data;
    struct sync_engine *engine;
    struct sync_vector *model;
    struct agenda agenda;
    struct random random;
    uint32_t *records; /* [train's count], shuffled for each run */
    uint32_t record_count, next_record;

    /* of the epoch at hand */
    struct span *spans; /* [function_count] */
    uint32_t function_count, next_batch;
    uint64_t version; /* updates so far */
    double late;      /* sum of updates' staleness */
};

static int open_engine(struct siren_sgd *sgd, struct error *error)
{
    const struct dataset_shape *shape = dataset_shape(sgd->data.train);
    struct sync_engine_options options = {
        .spec = {.kind = MODEL_LAYERS,
                 .loss = LOSS_CROSS_ENTROPY,
                 .channels = shape->channels,
                 .height = shape->height,
                 .width = shape->width,
                 .classes = shape->classes,
                 .layer_count = 3,
                 .layers = {{.type = LAYER_DENSE, .outputs = HIDDEN},
                            {.type = LAYER_RELU},
                            {.type = LAYER_DENSE}}},
        .batch = BATCH,
    };
    return model_spec_check(&options.spec, error) < 0
               ? -1
               : sync_engine_open(&options, &sgd->engine, error);
}

static double measure(struct siren_sgd *sgd)
{
    const struct sync_range range = {0, MEASURED_RECORDS};
    struct sync_measure measured = {.loss = loss_max};
    struct error error;
    /* What could be wrong with the data was, when it was opened. */
    const int result = sync_engine_measure(sgd->engine, sgd->model->values, sgd->data.test, &range,
                                           &measured, &error);
    ASSERT(result == 0);
    return isfinite(measured.loss) ? fmin(measured.loss, loss_max) : loss_max;
}

static int check_data(struct siren_sgd *sgd, struct error *error)
{
    const struct sync_range range = {0, MEASURED_RECORDS};
    struct sync_measure measured;
    if (sgd->record_count < EPOCH_RECORDS ||
        dataset_shape(sgd->data.test)->count < MEASURED_RECORDS)
        return error_set(error, ERROR_INVALID, "fewer than %d records to learn, or %d to measure",
                         EPOCH_RECORDS, MEASURED_RECORDS);
    sgd->model = sync_engine_begin(sgd->engine, 0);
    return sync_engine_measure(sgd->engine, sgd->model->values, sgd->data.test, &range, &measured,
                               error);
}

int siren_sgd_open(struct siren_sgd_data data, struct siren_sgd **out_sgd, struct error *error)
{
    AUTO(siren_sgd) struct siren_sgd *sgd = memory_zeroed(1, sizeof(*sgd));
    sgd->data = data;
    sgd->record_count = dataset_shape(data.train)->count;
    agenda_init(&sgd->agenda);
    if (open_engine(sgd, error) < 0 || check_data(sgd, error) < 0)
        return -1;
    sgd->records = memory_zeroed(sgd->record_count, sizeof(*sgd->records));
    *out_sgd = TAKE(sgd);
    return 0;
}

void siren_sgd_free(struct siren_sgd *sgd)
{
    if (!sgd)
        return;
    if (sgd->engine)
        sync_vector_release(sync_engine_vectors(sgd->engine), &sgd->model);
    sync_engine_free(sgd->engine);
    agenda_done(&sgd->agenda);
    free(sgd->records);
    free(sgd);
}

double siren_sgd_begin(struct siren_sgd *sgd, uint64_t run)
{
    random_init(&sgd->random, run);
    sync_vector_release(sync_engine_vectors(sgd->engine), &sgd->model);
    sgd->model = sync_engine_begin(sgd->engine, random_u64(&sgd->random));
    for (uint32_t i = 0; i < sgd->record_count; i++)
        sgd->records[i] = i;
    random_shuffle(&sgd->random, sgd->records, sgd->record_count);
    sgd->next_record = 0;
    return measure(sgd);
}

static void take_span(struct siren_sgd *sgd, uint32_t function, int64_t now_ns)
{
    struct span *span = &sgd->spans[function];
    const uint32_t share = EPOCH_BATCHES / (SPANS_OF_FUNCTION * sgd->function_count);
    const uint32_t left = EPOCH_BATCHES - sgd->next_batch;
    uint32_t count = share > 1 ? share : 1;
    count = count < left ? count : left;
    if (count == 0)
        return;
    *span = (struct span){sync_vector_hold(sgd->model), sgd->version, sgd->next_batch, count};
    sgd->next_batch += count;
    const double times =
        exp(time_deviation * random_normal(&sgd->random) - time_deviation * time_deviation / 2);
    const struct agenda_item item = {.at = now_ns + llround((double)batch_ns * count * times),
                                     .index = function};
    agenda_put(&sgd->agenda, &item);
}

/* From its base, a step for each batch. */
static struct sync_vector *train_span(struct siren_sgd *sgd, const struct span *span)
{
    struct sync_vectors *vectors = sync_engine_vectors(sgd->engine);
    struct sync_vector *local = sync_vector_hold(span->base);
    for (uint32_t i = 0; i < span->count; i++) {
        uint32_t records[BATCH];
        double loss;
        const uint32_t first = sgd->next_record + (span->first + i) * BATCH;
        for (uint32_t k = 0; k < BATCH; k++)
            records[k] = sgd->records[(first + k) % sgd->record_count];
        const float *gradient =
            sync_engine_gradient(sgd->engine, local, sgd->data.train, records, BATCH, &loss);
        sync_vector_step(vectors, &local, &rule, NULL, gradient);
    }
    return local;
}

/* W += (L - base) / n */
static void fold(struct siren_sgd *sgd, struct span *span)
{
    struct sync_vectors *vectors = sync_engine_vectors(sgd->engine);
    struct sync_vector *local = train_span(sgd, span);
    struct sync_vector *after = sync_vector_new(vectors);
    const float share = 1 / (float)sgd->function_count;
    for (size_t i = 0; i < vectors->count; i++)
        after->values[i] =
            sgd->model->values[i] + share * (local->values[i] - span->base->values[i]);
    sync_vector_release(vectors, &local);
    sync_vector_release(vectors, &span->base);
    sync_vector_release(vectors, &sgd->model);
    sgd->model = after;
    sgd->late += (double)(sgd->version - span->version);
    sgd->version++;
}

struct siren_sgd_epoch siren_sgd_epoch(struct siren_sgd *sgd, uint32_t function_count)
{
    ASSERT(function_count >= 1);
    const uint64_t version = sgd->version;
    struct agenda_item item = {.at = 0};
    sgd->spans = memory_zeroed(function_count, sizeof(*sgd->spans));
    sgd->function_count = function_count;
    sgd->next_batch = 0;
    sgd->late = 0;
    for (uint32_t i = 0; i < function_count; i++)
        take_span(sgd, i, 0);
    while (agenda_take(&sgd->agenda, &item)) {
        fold(sgd, &sgd->spans[item.index]);
        take_span(sgd, item.index, item.at);
    }
    free(sgd->spans);
    sgd->spans = NULL;
    sgd->next_record = (sgd->next_record + EPOCH_RECORDS) % sgd->record_count;
    return (struct siren_sgd_epoch){
        .loss = measure(sgd),
        .longer = (double)item.at * function_count / ((double)batch_ns * EPOCH_BATCHES),
        .staleness = sgd->late / (double)(sgd->version - version),
    };
}
