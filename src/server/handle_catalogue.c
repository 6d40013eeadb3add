/* What a job can be made of: built-in data sets and models. */
#include "server/datasets.h"
#include "server/handlers.h"
#include "server/view.h"
#include "train/model_spec.h"

/* ---- Data sets ------------------------------------------------------------------------------- */

static void write_dataset(struct json_writer *writer, struct server *server,
                          const struct dataset_entry *entry)
{
    const uint64_t record_bytes = (uint64_t)entry->channels * entry->height * entry->width;
    json_object_begin(writer);
    json_field_string(writer, "name", entry->name);
    json_field_string(writer, "about", entry->about);
    json_field_string(writer, "licence", entry->licence);
    json_field_string(writer, "origin", entry->origin);
    json_field_u64(writer, "train_records", entry->train_records);
    json_field_u64(writer, "test_records", entry->test_records);
    json_field_u64(writer, "record_bytes", record_bytes);
    json_field_u64(writer, "channels", entry->channels);
    json_field_u64(writer, "height", entry->height);
    json_field_u64(writer, "width", entry->width);
    json_field_u64(writer, "classes", entry->classes);
    json_field_bool(writer, "is_here", datasets_has_entry(server->datasets, entry));
    json_key(writer, "parts");
    json_array_begin(writer);
    for (int i = 0; i < DATASET_PART_COUNT && entry->hashes[i]; i++) {
        json_object_begin(writer);
        json_field_string(writer, "name", dataset_part_name((enum dataset_part)i));
        json_field_string(writer, "manifest", entry->hashes[i]);
        json_object_end(writer);
    }
    json_array_end(writer);
    json_object_end(writer);
}

void handle_datasets(struct http_request *request, void *context)
{
    struct server *server = context;
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_key(&answer.writer, "items");
    json_array_begin(&answer.writer);
    for (size_t i = 0; i < dataset_entry_count(); i++)
        write_dataset(&answer.writer, server, dataset_entry_at(i));
    json_array_end(&answer.writer);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}

/* ---- Models ---------------------------------------------------------------------------------- */

/* As it is for the data it is best known for: other data change its ends. */
static int write_model(struct json_writer *writer, enum model_kind kind, struct error *error)
{
    static const char *const takes[] = {"", "rows", "sequences", "images"}; /* by rank */
    struct model_spec spec;
    struct parameter_table table;
    uint64_t shape[MODEL_INPUT_RANK_MAX];
    model_spec_default(kind, &spec);
    if (model_spec_layout(&spec, &table, error) < 0)
        return -1;
    const uint32_t rank = model_spec_input_shape(&spec, shape);
    json_object_begin(writer);
    json_field_string(writer, "name", model_kind_name(kind));
    json_field_string(writer, "loss", loss_kind_name(spec.loss));
    json_field_string(writer, "takes", spec.vocabulary ? "tokens" : takes[rank]);
    json_key(writer, "input");
    json_array_begin(writer);
    for (uint32_t i = 0; i < rank; i++)
        json_u64(writer, shape[i]);
    json_array_end(writer);
    json_field_u64(writer, "parameters", table.float_count);
    json_key(writer, "spec");
    model_spec_write(writer, &spec);
    json_object_end(writer);
    return 0;
}

void handle_models(struct http_request *request, void *context)
{
    (void)context;
    struct view_answer answer;
    struct error error;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_key(&answer.writer, "items");
    json_array_begin(&answer.writer);
    for (enum model_kind kind = 0; kind < MODEL_LAYERS; kind++)
        if (write_model(&answer.writer, kind, &error) < 0) {
            buffer_done(&answer.body);
            http_reply_error(request, &error);
            return;
        }
    json_array_end(&answer.writer);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}
