/* A job file, as YAML and as JSON: what is read must survive being written and read again. */
#include "base/assert.h"
#include "runtime/job_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same as a file that people could have written, where that is not too long for one. */
static void check_file(struct arena *arena, const struct job_spec *spec, const struct buffer *json)
{
    struct error error;
    struct job_spec again;
    struct buffer yaml AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&yaml, 1 << 20);
    buffer_init(&second, 1 << 20);
    int result = job_file_write(arena, spec, &yaml, &error);
    ASSERT(result == 0);
    if (yaml.size > JOB_SPEC_SIZE_MAX)
        return;
    result = job_file_parse(arena, buffer_text(&yaml), "fuzz.yaml", &again, NULL, &error);
    ASSERT(result == 0);
    job_spec_write(&again, &second);
    ASSERT(json->size == second.size && !memcmp(json->data, second.data, second.size));
}

static void check_round_trip(struct arena *arena, const struct job_spec *spec)
{
    struct error error;
    struct job_spec again;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 20);
    buffer_init(&second, 1 << 20);
    job_spec_write(spec, &first);
    /* Canonical JSON may be longer than the source; only what fits is promised to be read. */
    if (first.size > JOB_SPEC_SIZE_MAX)
        return;
    const int result = job_spec_read(arena, buffer_text(&first), &again, &error);
    ASSERT(result == 0);
    job_spec_write(&again, &second);
    ASSERT(first.size == second.size && !memcmp(first.data, second.data, first.size));
    /* A file is of a new job; one that is only stored may have what that may not. */
    if (job_spec_read_new(arena, buffer_text(&first), &again, &error) == 0)
        check_file(arena, spec, &first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    const struct text text = {(const char *)data, size};
    if (job_file_parse(arena, text, "fuzz.yaml", &spec, NULL, &error) == 0)
        check_round_trip(arena, &spec);
    if (job_spec_read(arena, text, &spec, &error) == 0)
        check_round_trip(arena, &spec);
    return 0;
}
