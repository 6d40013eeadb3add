#include "train/model_card.h"

#include "base/clock.h"
#include "base/file.h"
#include "train/safetensors.h"

#include <inttypes.h>
#include <limits.h>

/* A path's last name may begin or end with a slash: that is no part of what the data are called. */
static struct text data_name(const char *data)
{
    struct text name = text_of(data);
    while (name.size > 1 && name.data[0] == '/')
        name = (struct text){name.data + 1, name.size - 1};
    while (name.size > 1 && name.data[name.size - 1] == '/')
        name.size--;
    return name;
}

void model_card_append(struct json_writer *writer, const struct model_card *card)
{
    char finished[CLOCK_TEXT_SIZE];
    clock_format_utc(card->finished_utc_ms, finished);
    json_object_begin(writer);
    json_key(writer, "model");
    model_spec_write(writer, &card->spec);
    if (card->job_name)
        json_field_string(writer, "name", card->job_name);
    json_field_u64(writer, "job", card->job);
    json_field_text(writer, "data", data_name(card->data));
    json_field_string(writer, "policy", card->policy);
    if (card->deviation > 0) {
        json_field_double(writer, "mean", card->mean);
        json_field_double(writer, "deviation", card->deviation);
    }
    json_field_double(writer, "test_accuracy", card->test_accuracy);
    json_field_double(writer, "test_loss", card->test_loss);
    json_field_u64(writer, "samples", card->samples);
    json_field_u64(writer, "steps", card->steps);
    json_field_double(writer, "train_seconds", card->train_seconds);
    json_field_u64(writer, "workers", card->workers);
    json_field_u64(writer, "batch", card->batch);
    json_field_double(writer, "lr", card->lr);
    json_field_double(writer, "momentum", card->momentum);
    json_field_double(writer, "weight_decay", card->weight_decay);
    json_field_u64(writer, "seed", card->seed);
    json_field_string(writer, "finished", finished);
    json_object_end(writer);
}

static int path_in(const char *folder, const char *file, char *out, struct error *error)
{
    const int length = snprintf(out, PATH_MAX, "%s/%s", folder, file);
    if (length < 0 || length >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "folder \"%.100s\": the path is too long", folder);
    return 0;
}

static int export_tensors(const char *folder, const struct model_card *card,
                          const float *parameters, struct error *error)
{
    struct parameter_table table;
    char path[PATH_MAX];
    if (model_spec_layout(&card->spec, &table, error) < 0 ||
        path_in(folder, "model.safetensors", path, error) < 0)
        return -1;
    char accuracy[32], job[24], seed[24], mean[32], deviation[32];
    struct buffer spec AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&spec, MODEL_SPEC_JSON_MAX);
    json_writer_init(&writer, &spec);
    model_spec_write(&writer, &card->spec);
    if (buffer_check(&spec, error) < 0)
        return -1;
    snprintf(mean, sizeof(mean), "%.9g", card->mean);
    snprintf(deviation, sizeof(deviation), "%.9g", card->deviation);
    snprintf(accuracy, sizeof(accuracy), "%.4f", card->test_accuracy);
    snprintf(job, sizeof(job), "%" PRIu64, card->job);
    snprintf(seed, sizeof(seed), "%" PRIu64, card->seed);
    const struct safetensors_metadata metadata[] = {
        {"format", "pt"}, /* row-major with torch's order of dimensions, as its readers ask */
        {"model", model_kind_name(card->spec.kind)},
        {"data", card->data ? card->data : ""},
        {"policy", card->policy ? card->policy : ""},
        {"test_accuracy", accuracy},
        {"job", job},
        {"seed", seed},
        {MODEL_CARD_SPEC_KEY, buffer_string(&spec)},
        {"mean", mean}, /* the last two of images of bytes only */
        {"deviation", deviation},
    };
    const uint32_t count = sizeof(metadata) / sizeof(*metadata) - (card->deviation > 0 ? 0 : 2);
    return safetensors_write(path, &table, parameters, metadata, count, error);
}

static int export_card(const char *folder, const struct model_card *card, struct error *error)
{
    char path[PATH_MAX];
    if (path_in(folder, "card.json", path, error) < 0)
        return -1;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, (size_t)64 * 1024);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    model_card_append(&writer, card);
    buffer_append_byte(&buffer, '\n');
    if (buffer_check(&buffer, error) < 0)
        return error_wrap(error, "card");
    const struct text part = buffer_text(&buffer);
    return file_replace(path, &part, 1, 0644, error);
}

int model_card_export(const char *folder, const struct model_card *card, const float *parameters,
                      struct error *error)
{
    if (export_tensors(folder, card, parameters, error) < 0 || export_card(folder, card, error) < 0)
        return error_wrap(error, "export model");
    return 0;
}
