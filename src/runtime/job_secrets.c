#include "runtime/job_secrets.h"

#include "base/assert.h"
#include "runtime/job_field_internal.h"

static const struct job_field secrets_fields[] = {
    {"secrets", JOB_FIELD_ENVS, offsetof(struct job_spec, secrets), .maximum = JOB_ENVS_MAX,
     .count_offset = offsetof(struct job_spec, secret_count)},
};
static const struct job_table secrets_table = JOB_TABLE(secrets_fields, struct job_spec);

bool job_spec_has_secrets(const struct job_spec *spec)
{
    return spec->secret_count > 0 && job_spec_is_command(spec);
}

int job_secrets_write(const struct job_spec *spec, struct buffer *json, struct error *error)
{
    for (size_t i = 0; i < spec->secret_count; i++)
        if (spec->secrets[i].source.size)
            return error_set(error, ERROR_INVALID, "secrets: \"" TEXT_FORMAT "\" has no value",
                             TEXT_ARGS(spec->secrets[i].name));
    const size_t before = json->size;
    struct json_writer writer;
    json_writer_init(&writer, json);
    job_table_write(&writer, &secrets_table, spec);
    if (buffer_check(json, error) < 0 || json->size - before > JOB_SECRETS_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "secrets: are longer than %d bytes together",
                         JOB_SECRETS_SIZE_MAX);
    return 0;
}

int job_secrets_read(struct arena *arena, struct text json, struct job_spec *out_spec,
                     struct error *error)
{
    struct job_node *root;
    if (job_node_read_json(arena, json, &root, error) < 0)
        return error_wrap(error, "secrets");
    return job_table_read(arena, &secrets_table, root, NULL, out_spec, NULL, error);
}

struct text job_secrets_names(struct arena *arena, const struct job_spec *spec)
{
    struct buffer names AUTO_BUFFER;
    buffer_init(&names, (size_t)JOB_ENVS_MAX * (JOB_ENV_NAME_SIZE_MAX + 1));
    for (size_t i = 0; i < spec->secret_count; i++)
        buffer_append_format(&names, "%s" TEXT_FORMAT, i ? "," : "",
                             TEXT_ARGS(spec->secrets[i].name));
    ASSERT(!names.is_overflowed);
    return arena_copy_text(arena, buffer_text(&names));
}

struct job_spec job_secrets_named(struct arena *arena, const struct job_spec *spec)
{
    struct job_spec named = *spec;
    if (job_spec_has_secrets(spec))
        named.secret_names = job_secrets_names(arena, spec);
    named.secret_file = (struct text){0};
    return named;
}

int job_secrets_write_spec(const struct job_spec *spec, struct buffer *json, struct error *error)
{
    if (!job_spec_has_secrets(spec)) {
        job_spec_write(spec, json);
        return buffer_check(json, error);
    }
    if (job_secrets_write(spec, json, error) < 0)
        return -1;
    struct buffer rest AUTO_BUFFER;
    buffer_init(&rest, JOB_SPEC_SIZE_MAX);
    job_spec_write(spec, &rest);
    if (buffer_check(&rest, error) < 0)
        return -1;
    /* Two objects become one: "{" A "}" and "{" B "}". */
    ASSERT(json->data[json->size - 1] == '}' && rest.size > 2);
    json->data[json->size - 1] = ',';
    buffer_append(json, rest.data + 1, rest.size - 1);
    return buffer_check(json, error);
}
