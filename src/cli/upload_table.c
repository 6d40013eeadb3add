#include "cli/upload_table.h"

#include "base/assert.h"
#include "runtime/job_model.h"
#include "train/idx_reader.h"
#include "train/import_parts.h"
#include "train/model_spec.h"
#include "train/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Of data that lie at lenders the borrower's own part is the test. */
const char *upload_table_path(struct arena *arena, const struct job_train *train,
                              const char *folder)
{
    const bool is_peer = job_train_peer(train).size > 0;
    const char *name = arena_copy_string(arena, is_peer ? train->test : train->data);
    return folder && name[0] != '/' ? arena_format(arena, "%s/%s", folder, name) : name;
}

static const char *field_of(const struct job_train *train)
{
    return job_train_peer(train).size ? "train.test" : "train.data";
}

int upload_check_table(const struct job_spec *spec, const char *folder, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *path = upload_table_path(arena, &spec->train, folder);
    if (access(path, R_OK) < 0)
        return error_set_errno(error, errno, "%s: \"%s\"", field_of(&spec->train), path);
    return 0;
}

/* Here, where the borrower sees it, and not at the first lender. */
static int check_model(const struct job_spec *spec, const struct dataset_shape *shape,
                       struct error *error)
{
    const struct job_train *train = &spec->train;
    const struct augment augment = job_train_augment(train);
    if (augment_check(&augment, shape, error) < 0)
        return error_wrap(error, "train.augment");
    struct model_spec model;
    int layer;
    if (job_train_model(train, shape, &model, &layer, error) < 0)
        return error_wrap(error, train->layer_count ? "train.layers" : "train.model");
    if (job_train_check_memory(train, &model, spec->resources.memory_bytes.value, error) < 0)
        return error_wrap(error, "resources.memory");
    if (job_sync_check_servers(&spec->sync, &model, error) < 0)
        return error_wrap(error, "sync.servers");
    return 0;
}

static void tell(const struct upload_options *options, const char *what)
{
    if (options->on_reading)
        options->on_reading(options->context, what);
}

static void free_parts(void *context)
{
    struct import_parts *parts = context;
    import_parts_done(parts);
    free(parts);
}

/* For people: rows, texts and series travel in the same four parts as images. */
static const char *const part_titles[DATASET_PART_COUNT] = {
    [DATASET_TRAIN_IMAGES] = "training inputs",
    [DATASET_TRAIN_LABELS] = "training targets",
    [DATASET_TEST_IMAGES] = "test inputs",
    [DATASET_TEST_LABELS] = "test targets",
};

static int add_parts(struct arena *arena, const struct upload_options *options,
                     const struct import_parts *parts, struct job_spec *spec, struct error *error)
{
    struct job_input *inputs = arena_alloc(arena, (DATASET_PART_COUNT + 1) * sizeof(*inputs));
    const bool is_peer = job_train_peer(&spec->train).size > 0;
    size_t count = 0;
    for (int i = is_peer ? DATASET_TEST_IMAGES : 0; i < DATASET_PART_COUNT; i++) {
        const enum dataset_part part = (enum dataset_part)i;
        struct job_input *input = &inputs[count++];
        const struct spool *bytes = &parts->files[i];
        struct idx_header header;
        if (idx_parse_header(bytes->data, bytes->size, &header, error) < 0)
            return -1;
        const struct bundle_part added = {.name = part_titles[part],
                                          .packing = {.media_type = "application/x-idx",
                                                      .header_bytes = header.header_size,
                                                      .record_bytes = header.record_size},
                                          .bytes = {(const char *)bytes->data, bytes->size}};
        *input = (struct job_input){
            .name = text_of(dataset_part_name(part)),
            .split = part == DATASET_TRAIN_IMAGES || part == DATASET_TRAIN_LABELS ? JOB_SPLIT_TRAIN
                                                                                  : JOB_SPLIT_TEST};
        if (bundle_add(options->bundle, &added, input, error) < 0)
            return -1;
    }
    const struct bundle_part columns = {
        .name = "columns",
        .packing = {.media_type = "application/json", .record_bytes = 1},
        .bytes = buffer_text(&parts->columns)};
    inputs[count] = (struct job_input){.name = text_of(columns.name),
                                       .split = is_peer ? JOB_SPLIT_ALL : JOB_SPLIT_TEST};
    if (bundle_add(options->bundle, &columns, &inputs[count++], error) < 0)
        return -1;
    spec->inputs = inputs;
    spec->input_count = count;
    return 0;
}

/* Whether the file has what is to be told. */
static int check_target(const struct job_train *train, const struct dataset_shape *shape,
                        struct error *error)
{
    static const char *const told[] = {"a class for each record", "a number for each record",
                                       "running text to be continued"};
    if (shape->target == job_train_told(train))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "it has %s, which train.predict: " TEXT_FORMAT " does not tell",
                     told[shape->target], TEXT_ARGS(train->predict));
}

/* A folder named for a data set of the catalogue must hold that. */
static int check_catalogue(const struct job_train *train, const struct dataset_shape *shape,
                           struct error *error)
{
    struct dataset_shape known;
    if (job_train_shape(train, &known) && known.channels == shape->channels &&
        known.height == shape->height && known.width == shape->width &&
        known.classes == shape->classes)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "%u x %u x %u in %u classes is not " TEXT_FORMAT ": name it as a folder of "
                     "your own in train.data",
                     shape->channels, shape->height, shape->width, shape->classes,
                     TEXT_ARGS(train->data));
}

static const char *describe_records(struct arena *arena, const struct import *import,
                                    const struct dataset_shape *shape)
{
    switch (import->form) {
    case IMPORT_BYTES:
        return arena_format(arena, "%u images of %u x %u x %u", shape->count, shape->channels,
                            shape->height, shape->width);
    case IMPORT_TOKENS:
        return arena_format(arena, "%u texts of %u tokens out of %u", shape->count, shape->width,
                            shape->vocabulary);
    case IMPORT_SPARSE:
        if (shape->vocabulary)
            return arena_format(arena, "%u sparse rows of at most %u out of %u places",
                                shape->count, shape->width, shape->vocabulary);
        break;
    case IMPORT_FLOATS:
        if (shape->height > 1)
            return arena_format(arena, "%u windows of %u rows of %u numbers", shape->count,
                                shape->height, shape->width);
        break;
    case IMPORT_FORM_COUNT:
        break;
    }
    return arena_format(arena, "%u rows of %u numbers", shape->count, shape->width);
}

static const char *describe_target(struct arena *arena, const struct import *import)
{
    const char *name =
        import->target_name[0] ? arena_format(arena, " of \"%s\"", import->target_name) : "";
    switch (import->target) {
    case IMPORT_CLASS:
        return arena_format(arena, "%u classes%s", import->classes, name);
    case IMPORT_NUMBER:
        return arena_format(arena, "a number%s to tell", name);
    case IMPORT_NEXT:
    case IMPORT_TARGET_COUNT:
        break;
    }
    return "the next one of each to tell";
}

static void describe(struct arena *arena, const struct upload_options *options,
                     const struct import *import, const struct dataset_shape *shape)
{
    tell(options, arena_format(arena, "%s; %s.", describe_records(arena, import, shape),
                               describe_target(arena, import)));
    if (import->dropped_rows || import->filled_values)
        tell(options, arena_format(arena, "%llu rows dropped, %llu missing values filled in.",
                                   (unsigned long long)import->dropped_rows,
                                   (unsigned long long)import->filled_values));
}

int upload_read_parts(struct arena *arena, const struct upload_options *options, const char *path,
                      struct job_spec *spec, struct import_parts *out_parts, struct error *error)
{
    struct job_train *train = &spec->train;
    struct import_options reading;
    struct import import AUTO_IMPORT = {0};
    const bool is_peer = job_train_peer(train).size > 0;
    job_train_import(arena, train, &reading);
    if (import_read(path, &reading, &import, error) < 0)
        return error_wrap(error, "%s", field_of(train));
    const struct dataset_shape shape =
        is_peer ? import_parts_shape_shared(&import) : import_parts_shape(&import);
    if (check_target(train, &shape, error) < 0 ||
        (is_peer && import.form == IMPORT_TOKENS && import.words.count &&
         error_set(error, ERROR_INVALID, "texts at lenders need train.read.words: hashed") < 0))
        return error_wrap(error, "%s: \"%s\"", field_of(train), path);
    describe(arena, options, &import, &shape);
    if (!job_train_is_file(train) && check_catalogue(train, &shape, error) < 0)
        return error_wrap(error, "train.data: \"%s\"", path);
    if (job_train_is_file(train)) {
        job_train_set_shape(train, &shape);
        if (check_model(spec, &shape, error) < 0)
            return -1;
    }
    const struct import_parts_options split = {
        .seed = train->seed,
        .split = is_peer ? IMPORT_SPLIT_ALL_TEST : IMPORT_SPLIT_TENTH,
        .entries = is_peer && shape.height == 2 && shape.vocabulary ? shape.width : 0,
        .label_skew = train->read.label_skew,
    };
    if (import_parts_init(out_parts, &import, &split, error) < 0)
        return error_wrap(error, "%s", field_of(train));
    if (job_train_is_file(train) && import.form == IMPORT_BYTES) {
        train->mean = out_parts->mean;
        train->deviation = out_parts->deviation;
    }
    train->target_deviation = import.target == IMPORT_NUMBER ? out_parts->target_deviation : 0;
    return 0;
}

int upload_import(struct arena *arena, const struct upload_options *options, const char *path,
                  struct job_spec *spec, struct error *error)
{
    struct import_parts *parts = calloc(1, sizeof(*parts));
    ASSERT(parts);
    tell(options, arena_format(arena, "Reading \"%s\".", path));
    if (upload_read_parts(arena, options, path, spec, parts, error) < 0) {
        free(parts);
        return -1;
    }
    bundle_keep_take(options->bundle, parts, free_parts);
    return add_parts(arena, options, parts, spec, error);
}

int upload_table(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    return upload_import(arena, options, upload_table_path(arena, &spec->train, options->folder),
                         spec, error);
}
