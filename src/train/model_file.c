#include "train/model_file.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/memory.h"
#include "train/checkpoint.h"
#include "train/model_card.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CARD_SIZE_MAX = 64 << 10 };

struct card_head {
    struct text model;
    double mean, deviation;
};

static const struct json_field card_fields[] = {
    {"model", JSON_ANY, offsetof(struct card_head, model), .is_required = true,
     .size_max = MODEL_SPEC_JSON_MAX},
    {"mean", JSON_DOUBLE, offsetof(struct card_head, mean)},
    {"deviation", JSON_DOUBLE, offsetof(struct card_head, deviation)},
};
static const struct json_schema card_schema =
    JSON_SCHEMA_LENIENT("card", card_fields, struct card_head);

const char *model_file_metadata(const struct model_file *file, const char *key)
{
    for (uint32_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}

static void take_number(const struct model_file *file, const char *key, double *out)
{
    struct error ignored; /* what is no number is not known */
    double value;
    const char *text = model_file_metadata(file, key);
    if (text && text_parse_double(text_of(text), &value, &ignored) == 0)
        *out = value;
}

/* The card in the folder of `path`. */
static int read_card(struct model_file *file, const char *path, struct error *error)
{
    char card_path[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int folder_size = slash ? (int)(slash - path) + 1 : 0;
    struct buffer bytes AUTO_BUFFER;
    struct card_head head = {0};
    buffer_init(&bytes, CARD_SIZE_MAX);
    if (snprintf(card_path, sizeof(card_path), "%.*scard.json", folder_size, path) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the path is too long");
    if (file_read(card_path, &bytes, error) < 0) {
        if (error->code != ERROR_NOT_FOUND)
            return -1;
        return error_set(
            error, ERROR_INVALID,
            "\"%.100s\" does not say what model it is, and there is no card.json beside "
            "it",
            path);
    }
    if (json_read(file->arena, buffer_text(&bytes), &card_schema, &head, error) < 0 ||
        model_spec_read(file->arena, head.model, &file->spec, error) < 0)
        return error_wrap(error, "\"%.100s\"", card_path);
    file->mean = head.mean;
    file->deviation = head.deviation;
    return 0;
}

static int read_spec(struct model_file *file, const char *path, struct error *error)
{
    const char *spec = model_file_metadata(file, MODEL_CARD_SPEC_KEY);
    if (!spec)
        return read_card(file, path, error);
    take_number(file, "mean", &file->mean);
    take_number(file, "deviation", &file->deviation);
    if (model_spec_read(file->arena, text_of(spec), &file->spec, error) < 0)
        return error_wrap(error, "\"%.100s\"", path);
    return 0;
}

static const struct parameter *find_tensor(const struct safetensors *tensors, const char *name)
{
    for (uint32_t i = 0; i < tensors->tensor_count; i++)
        if (strcmp(tensors->tensors[i].name, name) == 0)
            return &tensors->tensors[i];
    return NULL;
}

static void parameters_allocate(struct model_file *file, size_t count)
{
    file->parameter_count = count;
    file->parameters = malloc(count * sizeof(float));
    ASSERT(file->parameters != NULL); /* of a checked spec */
}

static int take_tensors(struct model_file *file, const struct safetensors *tensors,
                        struct error *error)
{
    struct parameter_table table;
    const char *kind = model_kind_name(file->spec.kind);
    if (model_spec_layout(&file->spec, &table, error) < 0)
        return -1;
    parameters_allocate(file, table.float_count);
    for (uint32_t i = 0; i < table.count; i++) {
        const struct parameter *wanted = &table.items[i];
        const struct parameter *found = find_tensor(tensors, wanted->name);
        if (!found)
            return error_set(error, ERROR_INVALID, "it has no tensor %s, which %s needs",
                             wanted->name, kind);
        if (found->rank != wanted->rank ||
            memcmp(found->shape, wanted->shape, wanted->rank * sizeof(*wanted->shape)) != 0)
            return error_set(error, ERROR_INVALID, "its tensor %s has another shape than in %s",
                             wanted->name, kind);
        memcpy(file->parameters + wanted->offset, tensors->data + found->offset,
               wanted->count * sizeof(float));
    }
    if (tensors->tensor_count != table.count)
        return error_set(error, ERROR_INVALID, "it has %u tensors, and %s only %u",
                         tensors->tensor_count, kind, table.count);
    return 0;
}

static int open_tensors(struct model_file *file, const char *path, struct error *error)
{
    AUTO(safetensors) struct safetensors *tensors = NULL;
    if (safetensors_read(path, &tensors, error) < 0)
        return -1;
    struct safetensors_metadata *metadata =
        arena_alloc(file->arena, (tensors->metadata_count + 1) * sizeof(*metadata));
    for (uint32_t i = 0; i < tensors->metadata_count; i++)
        metadata[i] = (struct safetensors_metadata){
            arena_copy_string(file->arena, text_of(tensors->metadata[i].key)),
            arena_copy_string(file->arena, text_of(tensors->metadata[i].value)),
        };
    file->metadata = metadata;
    file->metadata_count = tensors->metadata_count;
    if (read_spec(file, path, error) < 0)
        return -1;
    if (take_tensors(file, tensors, error) < 0)
        return error_wrap(error, "\"%.100s\"", path);
    return 0;
}

static int open_checkpoint(struct model_file *file, const char *path, struct error *error)
{
    AUTO(checkpoint) struct checkpoint *checkpoint = NULL;
    if (checkpoint_read(path, &checkpoint, error) < 0)
        return -1;
    file->spec = checkpoint->spec;
    parameters_allocate(file, checkpoint->parameter_count);
    memcpy(file->parameters, checkpoint->parameters, checkpoint->parameter_count * sizeof(float));
    return 0;
}

static bool is_checkpoint(const char *path)
{
    char magic[8] = "";
    FILE *stream = fopen(path, "rbe");
    if (!stream)
        return false;
    const size_t size = fread(magic, 1, sizeof(magic), stream);
    fclose(stream);
    return size == sizeof(magic) && memcmp(magic, "SOUKCKPT", sizeof(magic)) == 0;
}

int model_file_open(const char *path, struct model_file **out_file, struct error *error)
{
    char inside[PATH_MAX];
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        if (snprintf(inside, sizeof(inside), "%s/model.safetensors", path) >= PATH_MAX)
            return error_set(error, ERROR_INVALID, "the path is too long");
        path = inside;
    }
    AUTO(model_file) struct model_file *file = memory_zeroed(1, sizeof(*file));
    file->arena = arena_new(0);
    if ((is_checkpoint(path) ? open_checkpoint : open_tensors)(file, path, error) < 0)
        return error->code == ERROR_EXHAUSTED
                   ? error_set(error, ERROR_CORRUPT,
                               "\"%.100s\" is neither a model (safetensors) nor a checkpoint", path)
                   : -1;
    *out_file = TAKE(file);
    return 0;
}

void model_file_free(struct model_file *file)
{
    if (!file)
        return;
    free(file->parameters);
    arena_free(file->arena);
    free(file);
}
