#include "cli/upload_table.h"

#include "base/assert.h"
#include "train/csv_parts.h"
#include "train/idx_reader.h"
#include "train/model_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define TABLE_SIZE_MAX ((size_t)4 << 30)

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
    enum model_kind kind;
    struct model_spec model;
    if (model_kind_parse(train->model, &kind, error) < 0)
        return error_wrap(error, "train.model");
    model_spec_default(kind, &model);
    model.channels = model.height = 1;
    model.width = train->features;
    model.classes = train->classes;
    return model_spec_check(&model, error);
}

static void tell(const struct upload_options *options, const char *what)
{
    if (options->on_reading)
        options->on_reading(options->context, what);
}

static void free_parts(void *context)
{
    struct csv_parts *parts = context;
    csv_parts_done(parts);
    free(parts);
}

static int add_parts(struct arena *arena, const struct upload_options *options,
                     const struct csv_parts *parts, struct job_spec *spec, struct error *error)
{
    struct job_input *inputs = arena_alloc(arena, (DATASET_PART_COUNT + 1) * sizeof(*inputs));
    for (int i = 0; i < DATASET_PART_COUNT; i++) {
        const enum dataset_part part = (enum dataset_part)i;
        const struct buffer *bytes = &parts->files[i];
        struct idx_header header;
        if (idx_parse_header(bytes->data, bytes->size, &header, error) < 0)
            return -1;
        const struct bundle_part added = {.name = dataset_part_name(part),
                                          .packing = {.media_type = "application/x-idx",
                                                      .header_bytes = header.header_size,
                                                      .record_bytes = header.record_size},
                                          .bytes = buffer_text(bytes)};
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

int upload_table(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    struct job_train *train = &spec->train;
    const struct csv_table_options reading = {
        .label = train->label.size ? arena_copy_string(arena, train->label) : NULL,
        .size_max = TABLE_SIZE_MAX,
    };
    const char *path = path_of(arena, train, options->folder);
    tell(options, arena_format(arena, "Reading \"%s\".", path));
    AUTO(csv_table) struct csv_table *table = NULL;
    if (csv_table_open(path, &reading, &table, error) < 0)
        return error_wrap(error, "train.data");
    train->features = table->feature_count;
    train->classes = table->class_count;
    if (check_model(train, error) < 0)
        return -1;
    struct csv_parts *parts = malloc(sizeof(*parts));
    ASSERT(parts);
    if (csv_parts_init(parts, table, train->seed, error) < 0) {
        free(parts);
        return -1;
    }
    bundle_keep_take(options->bundle, parts, free_parts);
    tell(options,
         arena_format(arena, "%u rows of %u numbers; %u classes of \"%s\".", table->row_count,
                      table->feature_count, table->class_count, table->label_name));
    return add_parts(arena, options, parts, spec, error);
}
