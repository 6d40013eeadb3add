#include "server/secrets.h"

#include "base/log.h"
#include "runtime/job_secrets.h"
#include "runtime/lease_message.h"
#include "server/call.h"
#include "server/sealed.h"
#include "server/server_internal.h"

#include <inttypes.h>

_Static_assert((int)JOB_SECRETS_SIZE_MAX == (int)SEALED_BYTES_MAX, "all can be sealed");
_Static_assert((int)JOB_SECRETS_SIZE_MAX == (int)LEASE_SECRETS_SIZE_MAX, "and sent");

static void undo_seal(struct call *call)
{
    struct error error;
    const struct job_spec *spec = call->undo_context;
    if (sealed_remove(call->server->sealed, spec->secret_file, &error) < 0)
        log_event(LOG_WARN, "secrets_left", "error=\"%s\"", error.message);
}

/* The job is to name no secrets but those that came with it. */
static int check(struct call *call, struct job_spec *spec, struct error *error)
{
    if (spec->secret_file.size)
        return error_set(error, ERROR_INVALID, "secret_file: is the market's to fill in");
    if (spec->secret_count && !job_spec_is_command(spec))
        return error_set(error, ERROR_INVALID,
                         "secrets: are for programs of your own: nothing of runtime native reads "
                         "them");
    const struct text names = job_secrets_names(call->arena, spec);
    if (spec->secret_names.size && !text_equal(spec->secret_names, names))
        return error_set(error, ERROR_INVALID,
                         "secret_names: not those that `secrets` has: their values are needed "
                         "again");
    spec->secret_names = names;
    return 0;
}

int secrets_seal(struct call *call, struct job_spec *spec, struct error *error)
{
    char name[SEALED_NAME_SIZE];
    struct buffer json AUTO_BUFFER;
    buffer_init_secret(&json, JOB_SPEC_SIZE_MAX);
    if (check(call, spec, error) < 0)
        return -1;
    if (!spec->secret_count)
        return 0;
    int result = job_secrets_write(spec, &json, error);
    if (result == 0)
        result =
            sealed_put(call->server->sealed, call->caller.account, buffer_text(&json), name, error);
    if (result < 0)
        return -1;
    spec->secret_file = arena_copy_text(call->arena, text_of(name));
    call->undo = undo_seal;
    call->undo_context = spec;
    return 0;
}

int secrets_open(const struct server *server, uint64_t account, const struct job_spec *spec,
                 struct buffer *json, struct error *error)
{
    if (!spec->secret_file.size)
        return 0;
    return sealed_get(server->sealed, account, spec->secret_file, json, error);
}

/* False: the spec cannot be read. Empty: the job has none. */
static bool find_file(struct arena *arena, const struct job *job, struct text *out_file)
{
    struct error error;
    struct job_spec spec = {0};
    const bool is_read = job_spec_read(arena, job->request.spec, &spec, &error) == 0;
    if (!is_read)
        log_event(LOG_WARN, "spec_unread", "job=%" PRIu64 " error=\"%s\"", job->id, error.message);
    *out_file = is_read ? spec.secret_file : (struct text){0};
    return is_read;
}

void secrets_forget(const struct server *server, const struct job *job)
{
    AUTO(arena) struct arena *arena = arena_new(4 << 20);
    struct error error;
    struct text file;
    if (find_file(arena, job, &file) && file.size &&
        sealed_remove(server->sealed, file, &error) < 0)
        log_event(LOG_WARN, "secrets_left", "job=%" PRIu64 " error=\"%s\"", job->id, error.message);
}

struct needed {
    struct arena *arena;
    const struct core *core;
};

/* A job that goes on and cannot be read may need any of them. */
static bool is_needed(void *context, struct text name)
{
    const struct needed *needed = context;
    for (size_t i = 0; i < core_job_count(needed->core); i++) {
        const struct job *job = core_job_at(needed->core, i);
        struct text file;
        arena_clear(needed->arena);
        if (!job_state_is_final(job->state) &&
            (!find_file(needed->arena, job, &file) || text_equal(file, name)))
            return true;
    }
    return false;
}

int secrets_sweep(const struct server *server, const struct core *core, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(4 << 20);
    struct needed needed = {arena, core};
    return sealed_sweep(server->sealed, is_needed, &needed, error);
}
