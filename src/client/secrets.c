#include "client/secrets.h"

#include "base/buffer.h"
#include "runtime/job_secrets.h"

#include <stdlib.h>
#include <string.h>

/* Where one of that name is or goes; NULL: there are too many. */
static struct job_env *place_of(struct job_env list[JOB_ENVS_MAX], size_t *count, struct text name)
{
    for (size_t i = 0; i < *count; i++)
        if (text_equal(list[i].name, name))
            return &list[i];
    return *count < JOB_ENVS_MAX ? &list[(*count)++] : NULL;
}

static int find_value(struct job_env *secret, struct error *error)
{
    char name[JOB_ENV_NAME_SIZE_MAX + 1];
    if (!secret->source.size)
        return 0;
    if (text_copy(secret->source, name, sizeof(name), error) < 0)
        return error_wrap(error, "secrets");
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets any */
    if (!value)
        return error_set(error, ERROR_INVALID,
                         "secrets: \"" TEXT_FORMAT "\" has no value: set %s in the environment, or "
                         "give one",
                         TEXT_ARGS(secret->name), name);
    *secret =
        (struct job_env){.name = secret->name, .value = text_of(value), .origin = secret->source};
    return 0;
}

/* What was read back has none. */
static void keep_origins(struct arena *arena, struct job_spec *spec, const struct job_env *list)
{
    struct job_env *kept = arena_alloc(arena, spec->secret_count * sizeof(*kept));
    for (size_t i = 0; i < spec->secret_count; i++) {
        const struct job_env *from = list;
        kept[i] = spec->secrets[i];
        while (!text_equal(from->name, kept[i].name)) /* the same names, sorted */
            from++;
        kept[i].origin = arena_copy_text(arena, from->origin);
    }
    spec->secrets = kept;
}

int secrets_fill(struct arena *arena, struct job_spec *spec, const char *const *given,
                 size_t given_count, struct error *error)
{
    struct job_env list[JOB_ENVS_MAX];
    size_t count = 0;
    for (; count < spec->secret_count; count++)
        list[count] = spec->secrets[count];
    struct text names = spec->secret_names, known;
    for (bool has_more = names.size > 0; has_more;) { /* of a job file that a market wrote */
        has_more = text_cut(names, ',', &known, &names);
        const size_t before = count;
        struct job_env *secret = place_of(list, &count, known);
        if (secret && count > before)
            *secret = (struct job_env){.name = known, .source = known};
    }
    for (size_t i = 0; i < given_count; i++) {
        struct text name, value = {0};
        const bool has_value = text_cut(text_of(given[i]), '=', &name, &value);
        struct job_env *secret = place_of(list, &count, name);
        if (!secret)
            return error_set(error, ERROR_INVALID, "secrets: more than %d", JOB_ENVS_MAX);
        *secret = has_value ? (struct job_env){.name = name, .value = value}
                            : (struct job_env){.name = name, .source = name};
    }
    for (size_t i = 0; i < count; i++)
        if (find_value(&list[i], error) < 0)
            return -1;
    if (count == 0)
        return 0;
    /* Names are checked, and sorted, as those of a file are. */
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    const struct job_spec all = {.secrets = list, .secret_count = count};
    if (job_secrets_write(&all, &json, error) < 0 ||
        job_secrets_read(arena, buffer_text(&json), spec, error) < 0)
        return -1;
    keep_origins(arena, spec, list);
    return 0;
}
