#include "function/work_put.h"

#include "train/idx_reader.h"

int work_put_part(struct object_store *store, struct work_job *job, enum lesson_part part,
                  struct text bytes, struct error *error)
{
    char *const headers[] = {job->images_header, job->labels_header};
    struct idx_header header;
    char key[OBJECT_KEY_SIZE];
    if (!bytes.size) /* what is told is in the inputs */
        return 0;
    if (idx_parse_header((const uint8_t *)bytes.data, bytes.size, &header, error) < 0)
        return -1;
    text_hex_encode(bytes.data, header.header_size, headers[part]);
    job->records = header.sizes[0];
    work_data_key(job->name, lesson_part_names[part], key);
    if (object_store_put(store, key, bytes, true, error) < 0 && error->code != ERROR_CONFLICT)
        return error_wrap(error, "put the data");
    return 0;
}

int work_put_job(struct object_store *store, const struct work_job *job, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct json_writer writer;
    struct buffer json AUTO_BUFFER;
    struct buffer there AUTO_BUFFER;
    buffer_init(&json, WORK_JSON_MAX);
    buffer_init(&there, WORK_JSON_MAX);
    json_writer_init(&writer, &json);
    json_write(&writer, &work_job_schema, job);
    if (buffer_check(&json, error) < 0)
        return -1;
    work_job_key(job->name, key);
    if (object_store_put(store, key, buffer_text(&json), true, error) == 0)
        return 0;
    if (error->code != ERROR_CONFLICT || object_store_read(store, key, &there, error) < 0)
        return -1;
    return text_equal(buffer_text(&there), buffer_text(&json))
               ? 0
               : error_set(error, ERROR_CONFLICT, "the store has another job \"%s\"", job->name);
}
