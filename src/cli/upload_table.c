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

static const char *path_of(struct arena *arena, const struct job_train *train, const char *folder)
{
    const char *name = arena_copy_string(arena, train->data);
    return folder && name[0] != '/' ? arena_format(arena, "%s/%s", folder, name) : name;
}

int upload_check_table(const struct job_spec *spec, const char *folder, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *path = path_of(arena, &spec->train, folder);
    if (access(path, R_OK) < 0)
        return error_set_errno(error, errno, "train.data: \"%s\"", path);
    return 0;
}

/* Here, where the borrower sees it, and not at the first lender. */
static int check_model(const struct job_train *train, struct error *error)
{
    struct model_spec model;
    const struct dataset_shape shape = {.channels = train->channels ? (uint32_t)train->channels : 1,
                                        .height = train->height ? (uint32_t)train->height : 1,
                                        .width = (uint32_t)train->features,
                                        .classes = (uint32_t)train->classes};
    int layer;
    if (job_train_model(train, &shape, &model, &layer, error) < 0)
        return error_wrap(error, train->layer_count ? "train.layers" : "train.model");
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

static int add_parts(struct arena *arena, const struct upload_options *options,
                     const struct import_parts *parts, struct job_spec *spec, struct error *error)
{
    struct job_input *inputs = arena_alloc(arena, (DATASET_PART_COUNT + 1) * sizeof(*inputs));
    for (int i = 0; i < DATASET_PART_COUNT; i++) {
        const enum dataset_part part = (enum dataset_part)i;
        const struct spool *bytes = &parts->files[i];
        struct idx_header header;
        if (idx_parse_header(bytes->data, bytes->size, &header, error) < 0)
            return -1;
        const struct bundle_part added = {.name = dataset_part_name(part),
                                          .packing = {.media_type = "application/x-idx",
                                                      .header_bytes = header.header_size,
                                                      .record_bytes = header.record_size},
                                          .bytes = {(const char *)bytes->data, bytes->size}};
        inputs[i] = (struct job_input){
            .name = text_of(added.name),
            .split = part == DATASET_TRAIN_IMAGES || part == DATASET_TRAIN_LABELS ? JOB_SPLIT_TRAIN
                                                                                  : JOB_SPLIT_TEST};
        if (bundle_add(options->bundle, &added, &inputs[i], error) < 0)
            return -1;
    }
    const struct bundle_part columns = {
        .name = "columns",
        .packing = {.media_type = "application/json", .record_bytes = 1},
        .bytes = buffer_text(&parts->columns)};
    inputs[DATASET_PART_COUNT] =
        (struct job_input){.name = text_of(columns.name), .split = JOB_SPLIT_TEST};
    if (bundle_add(options->bundle, &columns, &inputs[DATASET_PART_COUNT], error) < 0)
        return -1;
    spec->inputs = inputs;
    spec->input_count = DATASET_PART_COUNT + 1;
    return 0;
}

static void set_options(struct arena *arena, const struct job_train *train,
                        struct import_options *out)
{
    const struct job_read *read = &train->read;
    struct error ignored;
    import_options_default(out);
    out->format = read->format.size ? arena_copy_string(arena, read->format) : NULL;
    out->target = train->label.size ? arena_copy_string(arena, train->label) : NULL;
    out->category_columns =
        read->category_columns.size ? arena_copy_string(arena, read->category_columns) : NULL;
    out->skip_columns = read->skip.size ? arena_copy_string(arena, read->skip) : NULL;
    out->image_height = (uint32_t)read->image_height;
    out->image_width = (uint32_t)read->image_width;
    if (text_is(read->categories, "one-hot"))
        out->categories = IMPORT_CATEGORIES_ONE_HOT;
    if (text_is(read->missing, "drop"))
        out->missing = IMPORT_MISSING_DROP;
    else if (text_is(read->missing, "mean"))
        out->missing = IMPORT_MISSING_MEAN;
    else if (text_parse_double(read->missing, &out->missing_value, &ignored) == 0)
        out->missing = IMPORT_MISSING_CONSTANT;
}

/* What the built-in models can take. */
static int check_import(const struct import *import, struct error *error)
{
    if (import->form == IMPORT_TOKENS)
        return error_set(error, ERROR_INVALID, "it is text, which no built-in model takes yet");
    if (import->classes > 256)
        return error_set(error, ERROR_INVALID, "%u classes are more than 256", import->classes);
    return 0;
}

static void describe(struct arena *arena, const struct upload_options *options,
                     const struct import *import)
{
    const uint32_t count = import->train.count + import->test.count;
    if (import->form == IMPORT_BYTES)
        tell(options,
             arena_format(arena, "%u images of %u x %u x %u; %u classes.", count, import->channels,
                          import->height, import->width, import->classes));
    else
        tell(options,
             arena_format(arena, "%u rows of %u numbers; %u classes%s%s%s.", count, import->width,
                          import->classes, import->target_name[0] ? " of \"" : "",
                          import->target_name, import->target_name[0] ? "\"" : ""));
    if (import->dropped_rows || import->filled_values)
        tell(options, arena_format(arena, "%llu rows dropped, %llu missing values filled in.",
                                   (unsigned long long)import->dropped_rows,
                                   (unsigned long long)import->filled_values));
}

static int read_parts(struct arena *arena, const struct upload_options *options, const char *path,
                      struct job_spec *spec, struct import_parts *out_parts, struct error *error)
{
    struct job_train *train = &spec->train;
    struct import_options reading;
    struct import import AUTO_IMPORT = {0};
    const struct import_parts_options split = {.seed = train->seed,
                                               .label_skew = train->read.label_skew};
    set_options(arena, train, &reading);
    if (import_read(path, &reading, &import, error) < 0 || check_import(&import, error) < 0)
        return error_wrap(error, "train.data");
    if (job_train_is_file(train)) {
        const bool is_image = import.form == IMPORT_BYTES || import.height > 1;
        train->channels = is_image ? import.channels : 0;
        train->height = is_image ? import.height : 0;
        train->features = import.width;
        train->classes = import.classes;
        if (check_model(train, error) < 0)
            return -1;
    }
    describe(arena, options, &import);
    if (import_parts_init(out_parts, &import, &split, error) < 0)
        return error_wrap(error, "train.data");
    if (job_train_is_file(train) && import.form == IMPORT_BYTES) {
        train->mean = out_parts->mean;
        train->deviation = out_parts->deviation;
    }
    return 0;
}

int upload_import(struct arena *arena, const struct upload_options *options, const char *path,
                  struct job_spec *spec, struct error *error)
{
    struct import_parts *parts = calloc(1, sizeof(*parts));
    ASSERT(parts);
    tell(options, arena_format(arena, "Reading \"%s\".", path));
    if (read_parts(arena, options, path, spec, parts, error) < 0) {
        free(parts);
        return -1;
    }
    bundle_keep_take(options->bundle, parts, free_parts);
    return add_parts(arena, options, parts, spec, error);
}

int upload_table(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    return upload_import(arena, options, path_of(arena, &spec->train, options->folder), spec,
                         error);
}
