#include "sim/recommend_world.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TRAIN_RECORDS = 3000,
    TEST_RECORDS = 900,
    WIDTH_LEAST = 12,
    WIDTH_MORE = 13,
    CLASSES_LEAST = 3,
    CLASSES_MORE = 6,
    HIDDEN_LEAST = 32,
    HIDDEN_MORE = 65,
    CENTRES = 2, /* of each class: no plane parts them */
};
static const double kind_deviation = 0.06, pair_deviation = 0.1;
static const double mislabelled = 0.04, spread = 0.75,
                    centre_spread = 0.65; /* inputs of deviation 1 */

/*
 * What a market and a cloud have on offer: prices in microcredits an hour for a dollar's million;
 * lenders are cheap, near nothing and slow to send, spot instances a third of the price and gone
 * now and then. A vCPU is half a core.
 */
static const struct candidate offers[WORLD_KINDS] = {
    {"lender-board", CANDIDATE_MARKET, 350, 4000, 0, 0, 8000, 8, 5e6, 0.04, 2, 0.02, 0},
    {"lender-laptop", CANDIDATE_MARKET, 900, 2000, 0, 0, 22000, 8, 6e6, 0.03, 2, 0.05, 0},
    {"lender-desktop", CANDIDATE_MARKET, 1300, 6000, 0, 0, 70000, 8, 12e6, 0.02, 2, 0.02, 0},
    {"lender-lab", CANDIDATE_MARKET, 1000, 16000, 0, 0, 210000, 4, 60e6, 0.008, 2, 0.01, 0},
    {"t3.medium", CANDIDATE_ON_DEMAND, 800, 1000, 0, 0, 41600, 0, 30e6, 0.002, 50, 0, 0},
    {"t3.xlarge", CANDIDATE_ON_DEMAND, 800, 2000, 0, 0, 166400, 0, 60e6, 0.002, 50, 0, 0},
    {"m5.large", CANDIDATE_ON_DEMAND, 900, 1000, 0, 0, 96000, 0, 90e6, 0.001, 45, 0, 0},
    {"m5.2xlarge", CANDIDATE_ON_DEMAND, 900, 4000, 0, 0, 384000, 0, 150e6, 0.001, 45, 0, 0},
    {"c5.xlarge", CANDIDATE_ON_DEMAND, 1100, 2000, 0, 0, 170000, 0, 150e6, 0.001, 45, 0, 0},
    {"c5.4xlarge", CANDIDATE_ON_DEMAND, 1100, 8000, 0, 0, 680000, 0, 300e6, 0.001, 45, 0, 0},
    {"c5.xlarge spot", CANDIDATE_SPOT, 1100, 2000, 0, 0, 62000, 0, 150e6, 0.001, 55, 0.4, 0},
    {"m5.2xlarge spot", CANDIDATE_SPOT, 900, 4000, 0, 0, 140000, 0, 150e6, 0.001, 55, 0.25, 0},
    {"c5.4xlarge spot", CANDIDATE_SPOT, 1100, 8000, 0, 0, 250000, 0, 300e6, 0.001, 55, 0.5, 0},
    {"function-1769", CANDIDATE_FUNCTION, 800, 1000, 0, 0, 104000, 64, 20e6, 0.006, 1, 0, 900},
};

static double between(struct random *random, double least, double most)
{
    return least * exp(random_unit(random) * log(most / least));
}

static void draw_records(struct random *random, struct world_family *family, uint32_t width,
                         uint32_t classes)
{
    const uint32_t count = TRAIN_RECORDS + TEST_RECORDS;
    float *centres = calloc((size_t)classes * CENTRES * width, sizeof(*centres));
    family->inputs = calloc((size_t)count * width, sizeof(*family->inputs));
    family->labels = calloc(count, sizeof(*family->labels));
    ASSERT(centres && family->inputs && family->labels);
    for (uint32_t i = 0; i < classes * CENTRES * width; i++)
        centres[i] = (float)(centre_spread * random_normal(random));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t centre = (uint32_t)random_below(random, (uint64_t)classes * CENTRES);
        for (uint32_t n = 0; n < width; n++)
            family->inputs[i * width + n] =
                centres[centre * width + n] + (float)(spread * random_normal(random));
        const bool is_wrong = random_unit(random) < mislabelled;
        family->labels[i] = (int32_t)(is_wrong ? random_below(random, classes) : centre / CENTRES);
    }
    free(centres);
}

static int open_records(struct world_family *family, uint32_t width, uint32_t classes,
                        struct error *error)
{
    struct dataset_shape shape = {
        .count = TRAIN_RECORDS, .channels = 1, .height = 1, .width = width, .classes = classes};
    struct dataset_arrays arrays = {.inputs = family->inputs, .labels = family->labels};
    if (dataset_open_arrays(&shape, &arrays, &family->train, error) < 0)
        return -1;
    shape.count = TEST_RECORDS;
    arrays.inputs += (size_t)TRAIN_RECORDS * width;
    arrays.labels += TRAIN_RECORDS;
    return dataset_open_arrays(&shape, &arrays, &family->test, error);
}

static void draw_model(struct random *random, struct world_family *family, uint32_t width,
                       uint32_t classes)
{
    const uint32_t hidden = HIDDEN_LEAST + (uint32_t)random_below(random, HIDDEN_MORE);
    model_spec_default(MODEL_LAYERS, &family->spec);
    family->spec.loss = LOSS_CROSS_ENTROPY;
    family->spec.channels = family->spec.height = 1;
    family->spec.width = width;
    family->spec.classes = classes;
    family->spec.layers[0] = (struct layer_spec){.type = LAYER_DENSE, .outputs = hidden};
    family->spec.layers[1] = (struct layer_spec){.type = LAYER_RELU};
    family->spec.layers[2] = (struct layer_spec){.type = LAYER_DENSE, .outputs = classes};
    family->spec.layer_count = 3;
    const uint64_t parameters = (uint64_t)hidden * (width + classes + 1) + classes;
    family->size = between(random, 1e6, 8e7) / (sizeof(float) * (double)parameters);
    family->signature.parameter_count = (uint64_t)llround((double)parameters * family->size);
}

static int family_open(struct world_family *family, uint32_t index, uint64_t seed,
                       struct error *error)
{
    struct random random;
    random_init(&random, seed ^ (index + UINT64_C(1)) * 0x9e3779b97f4a7c15);
    const uint32_t width = WIDTH_LEAST + (uint32_t)random_below(&random, WIDTH_MORE);
    const uint32_t classes = CLASSES_LEAST + (uint32_t)random_below(&random, CLASSES_MORE);
    draw_model(&random, family, width, classes);
    draw_records(&random, family, width, classes);
    const double step_s = between(&random, 4, 60); /* of 32 samples on the reference core */
    const double overhead = between(&random, 0.02, 0.2);
    family->work_s = step_s * (1 - overhead) / 32;
    family->overhead_s = step_s * overhead;
    family->efficiency = fmin(1, 0.85 + 0.08 * random_normal(&random));
    family->jitter = between(&random, 0.04, 0.3);
    for (uint32_t i = 0; i < WORLD_KINDS; i++)
        family->kind_factors[i] = exp(pair_deviation * random_normal(&random));
    family->signature.batch = 32;
    family->signature.rate = between(&random, 0.006, 0.03);
    (void)snprintf(family->signature.model, sizeof(family->signature.model), "model-%u", index);
    (void)snprintf(family->signature.data, sizeof(family->signature.data), "data-%u", index);
    (void)snprintf(family->signature.layers, sizeof(family->signature.layers), "dense relu dense");
    (void)snprintf(family->signature.policy, sizeof(family->signature.policy), "bsp");
    return open_records(family, width, classes, error);
}

int world_open(uint64_t seed, uint32_t family_count, struct world **out_world, struct error *error)
{
    ASSERT(family_count > 0 && family_count <= WORLD_FAMILIES_MAX);
    AUTO(world) struct world *world = memory_zeroed(1, sizeof(*world));
    struct random random;
    random_init(&random, seed);
    world->seed = seed;
    world->families = memory_zeroed(family_count, sizeof(*world->families));
    world->family_count = family_count;
    for (uint32_t i = 0; i < WORLD_KINDS; i++) {
        world->kinds[i] = offers[i];
        world->kind_factors[i] = exp(kind_deviation * random_normal(&random));
    }
    for (uint32_t i = 0; i < family_count; i++)
        if (family_open(&world->families[i], i, seed, error) < 0)
            return -1;
    *out_world = TAKE(world);
    return 0;
}

void world_free(struct world *world)
{
    if (!world)
        return;
    for (uint32_t i = 0; i < world->family_count; i++) {
        dataset_free(world->families[i].train);
        dataset_free(world->families[i].test);
        free(world->families[i].inputs);
        free(world->families[i].labels);
    }
    free(world->families);
    free(world);
}

double world_step_s(const struct world *world, const struct world_family *family, uint32_t kind,
                    uint32_t batch)
{
    const struct candidate *offer = &world->kinds[kind];
    const double speed =
        offer->speed_weight / 1000.0 * pow(offer->cores_milli / 1000.0, family->efficiency);
    return (family->overhead_s + family->work_s * batch) / speed * world->kind_factors[kind] *
           family->kind_factors[kind];
}
