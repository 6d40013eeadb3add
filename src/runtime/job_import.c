#include "runtime/job_import.h"

#include "runtime/job_model.h"
#include "train/idx_reader.h"
#include "train/reader.h"

#include <string.h>

struct text job_data_name(struct text path)
{
    size_t end = path.size;
    while (end > 1 && path.data[end - 1] == '/')
        end--;
    const char *slash = memrchr(path.data, '/', end);
    const bool has_dot = memchr(slash ? slash : path.data, '.',
                                end - (slash ? (size_t)(slash - path.data) : 0)) != NULL;
    /* Without a dot a slash must stay, or it would be a name of the catalogue. */
    const size_t start = slash ? (size_t)(slash - path.data) + (has_dot || end < path.size) : 0;
    return (struct text){path.data + start, (end < path.size ? end + 1 : end) - start};
}

static const char *field_of(const struct job_train *train)
{
    return job_train_peer(train).size ? "train.test" : "train.data";
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

static void describe(struct arena *arena, const struct import *import,
                     const struct dataset_shape *shape, job_import_note *note, void *context)
{
    if (!note)
        return;
    note(context, arena_format(arena, "%s; %s.", describe_records(arena, import, shape),
                               describe_target(arena, import)));
    if (import->dropped_rows || import->filled_values)
        note(context, arena_format(arena, "%llu rows dropped, %llu missing values filled in.",
                                   (unsigned long long)import->dropped_rows,
                                   (unsigned long long)import->filled_values));
}

int job_import_read(struct arena *arena, const char *path, struct job_spec *spec,
                    job_import_note *note, void *context, struct import_parts *out_parts,
                    struct error *error)
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
    describe(arena, &import, &shape, note, context);
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

/* For people: rows, texts and series travel in the same four parts as images. */
static const char *const part_titles[DATASET_PART_COUNT] = {
    [DATASET_TRAIN_IMAGES] = "training inputs",
    [DATASET_TRAIN_LABELS] = "training targets",
    [DATASET_TEST_IMAGES] = "test inputs",
    [DATASET_TEST_LABELS] = "test targets",
};

int job_part_of_idx(enum dataset_part part, struct text bytes, struct job_part *out_part,
                    struct error *error)
{
    struct idx_header header;
    if (idx_parse_header((const uint8_t *)bytes.data, bytes.size, &header, error) < 0)
        return -1;
    const bool is_train = part == DATASET_TRAIN_IMAGES || part == DATASET_TRAIN_LABELS;
    *out_part = (struct job_part){
        .name = dataset_part_name(part),
        .title = part_titles[part],
        .media_type = "application/x-idx",
        .split = is_train ? JOB_SPLIT_TRAIN : JOB_SPLIT_TEST,
        .header_bytes = header.header_size,
        .record_bytes = header.record_size,
        .bytes = bytes,
    };
    return 0;
}

struct job_part job_part_of_columns(struct text json, bool is_shared)
{
    return (struct job_part){
        .name = JOB_PART_COLUMNS,
        .title = JOB_PART_COLUMNS,
        .media_type = "application/json",
        .split = is_shared ? JOB_SPLIT_ALL : JOB_SPLIT_TEST,
        .record_bytes = 1,
        .bytes = json,
    };
}

int job_import_parts(const struct job_train *train, const struct import_parts *parts,
                     struct job_part out_parts[JOB_PARTS_MAX], size_t *out_count,
                     struct error *error)
{
    const bool is_peer = job_train_peer(train).size > 0;
    size_t count = 0;
    for (int i = is_peer ? DATASET_TEST_IMAGES : 0; i < DATASET_PART_COUNT; i++) {
        const struct text bytes = {(const char *)parts->files[i].data, parts->files[i].size};
        if (job_part_of_idx((enum dataset_part)i, bytes, &out_parts[count++], error) < 0)
            return -1;
    }
    out_parts[count++] = job_part_of_columns(buffer_text(&parts->columns), is_peer);
    *out_count = count;
    return 0;
}
