#include "runtime/job_signature.h"

#include "base/assert.h"
#include "runtime/job_model_internal.h"

#include <sodium.h>

#define TRAIN(member) offsetof(struct job_spec, train.member)

/* A new field here makes other signatures of all jobs that have it, and what was learnt of them is
 * found no more: it has to matter for a step. */
static const struct job_field task_fields[] = {
    {"runtime", JOB_FIELD_SCRIPT, offsetof(struct job_spec, runtime)},
    {"setup", JOB_FIELD_SCRIPT, offsetof(struct job_spec, setup)},
    {"run", JOB_FIELD_SCRIPT, offsetof(struct job_spec, run)},
    {"model", JOB_FIELD_SCRIPT, TRAIN(model)},
    {"layers", JOB_FIELD_LIST, TRAIN(layers), .table = &job_layer_table,
     .count_offset = TRAIN(layer_count)},
    {"loss", JOB_FIELD_SCRIPT, TRAIN(loss)},
    {"data", JOB_FIELD_SCRIPT, TRAIN(data)},
    {"label", JOB_FIELD_SCRIPT, TRAIN(label)},
    {"read", JOB_FIELD_OBJECT, TRAIN(read), .table = &job_read_table, .is_left_out = true},
    {"augment", JOB_FIELD_OBJECT, TRAIN(augment), .table = &job_augment_table, .is_left_out = true},
};
static const struct job_table task_table = JOB_TABLE(task_fields, struct job_spec);

static const struct job_field way_fields[] = {
    {"batch", JOB_FIELD_U64, TRAIN(batch)},
    {"policy", JOB_FIELD_SCRIPT, offsetof(struct job_spec, sync.policy)},
};
static const struct job_table way_table = JOB_TABLE(way_fields, struct job_spec);

static void hash(struct text bytes, char out_hex[JOB_SIGNATURE_SIZE])
{
    uint8_t digest[JOB_SIGNATURE_SIZE / 2];
    ASSERT(crypto_generichash(digest, sizeof(digest), (const uint8_t *)bytes.data, bytes.size, NULL,
                              0) == 0);
    text_hex_encode(digest, sizeof(digest), out_hex);
}

void job_signature(const struct job_spec *spec, struct job_signature *out_signature)
{
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json,
                (size_t)4 * JOB_SPEC_SIZE_MAX); /* an escaped character takes more than it did */
    json_writer_init(&writer, &json);
    job_table_write(&writer, &task_table, spec);
    hash(buffer_text(&json), out_signature->task);
    json_writer_init(&writer, &json);
    job_table_write(&writer, &way_table, spec);
    hash(buffer_text(&json), out_signature->whole);
}
