#include "server/profiles.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/query.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Writing --------------------------------------------------------------------------------- */

struct profile_row {
    uint64_t job, account;
    struct job_signature signature;
    int64_t updated_ms;
    bool is_final;
    struct buffer json;
};

static void put_profile(void *context, struct store_batch *batch)
{
    const struct profile_row *row = context;
    const struct store_value values[PROFILES_COLUMN_COUNT] = {
        [PROFILES_JOB] = store_integer((int64_t)row->job),
        [PROFILES_ACCOUNT] = store_integer((int64_t)row->account),
        [PROFILES_SIGNATURE] = store_text(text_of(row->signature.whole)),
        [PROFILES_TASK] = store_text(text_of(row->signature.task)),
        [PROFILES_UPDATED_MS] = store_integer(row->updated_ms),
        [PROFILES_IS_FINAL] = store_integer(row->is_final),
        [PROFILES_JSON] = store_text(buffer_text(&row->json)),
    };
    store_batch_put(batch, &tables[TABLE_PROFILES], values, PROFILES_COLUMN_COUNT);
}

static void release_profile(void *context)
{
    struct profile_row *row = context;
    buffer_done(&row->json);
    free(row);
}

static void submit_profile(struct server *server, const struct profile *profile)
{
    struct profile_row *row = calloc(1, sizeof(*row));
    struct json_writer writer;
    struct error error;
    ASSERT(row);
    row->job = profile->job;
    row->account = profile->account;
    row->signature = profile->signature;
    row->updated_ms = profile->updated_ms;
    row->is_final = job_state_is_final((enum job_state)profile->state);
    buffer_init(&row->json, PROFILE_SIZE_MAX);
    json_writer_init(&writer, &row->json);
    json_write(&writer, &profile_schema, profile);
    if (buffer_check(&row->json, &error) == 0) {
        server_put_rows(server, put_profile, row, release_profile);
        return;
    }
    log_event(LOG_WARN, "profile_not_kept", "job=%" PRIu64 " error=\"%s\"", profile->job,
              error.message);
    release_profile(row);
}

static int account_is_open(struct server *server, struct arena *arena, uint64_t account,
                           bool *out_is_open, struct error *error)
{
    const struct store_value *row = NULL;
    if (query_one(server, arena, TABLE_ACCOUNTS, "id", store_integer((int64_t)account), &row,
                  error) < 0)
        return -1;
    *out_is_open = row && row[ACCOUNTS_DELETED_MS].integer == 0;
    return 0;
}

void profiles_save(struct server *server, const struct live_job *live)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct profile profile;
    struct error error;
    bool is_there = false;
    if (account_is_open(server, arena, live->account, &is_there, &error) < 0 ||
        (is_there && profile_make(server, arena, live->job, live, &profile, &is_there, &error) < 0))
        log_event(LOG_WARN, "profile_not_kept", "job=%" PRIu64 " error=\"%s\"", live->job,
                  error.message);
    else if (is_there)
        submit_profile(server, &profile);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static int read_profile(struct arena *arena, const struct store_value *row, struct profile *out,
                        struct error *error)
{
    *out = (struct profile){0};
    return json_read_written(arena, row[PROFILES_JSON].bytes, &profile_schema, out, error);
}

int profiles_find(struct server *server, struct arena *arena, uint64_t job,
                  struct profile *out_profile, bool *out_is_there, struct error *error)
{
    const struct store_value *row = NULL;
    if (query_one(server, arena, TABLE_PROFILES, "job", store_integer((int64_t)job), &row, error) <
        0)
        return -1;
    *out_is_there = row != NULL;
    return row ? read_profile(arena, row, out_profile, error) : 0;
}

int profiles_is_shared(struct server *server, struct arena *arena, uint64_t account,
                       bool *out_is_shared, struct error *error)
{
    const struct store_value *row = NULL;
    if (query_one(server, arena, TABLE_PROFILE_CHOICES, "account", store_integer((int64_t)account),
                  &row, error) < 0)
        return -1;
    *out_is_shared = row && row[PROFILE_CHOICES_IS_SHARED].integer != 0;
    return 0;
}

/* Whether `reader` may learn from what `owner` ran. */
static int may_learn(struct server *server, struct arena *arena, uint64_t reader, uint64_t owner,
                     bool *out_may, struct error *error)
{
    bool is_given = false, is_taken = false;
    *out_may = reader == owner;
    if (*out_may || !server->options.has_shared_profiles)
        return 0;
    if (profiles_is_shared(server, arena, owner, &is_given, error) < 0 ||
        profiles_is_shared(server, arena, reader, &is_taken, error) < 0)
        return -1;
    *out_may = is_given && is_taken;
    return 0;
}

/* Two accounts mean the same by it: a file of one's own is called as another's by chance. */
static bool is_common(const struct profile *profile)
{
    const struct job_train train = {.data = text_of(profile->data)};
    return profile->data[0] && !job_train_is_file(&train);
}

static bool has_run(const struct profiles_learnt *learnt, uint64_t job)
{
    for (size_t i = 0; i < learnt->count; i++)
        if (learnt->runs[i]->job == job)
            return true;
    return false;
}

static int learn_from(struct server *server, struct arena *arena, uint64_t account,
                      const struct store_filter *filter, struct profiles_learnt *learnt,
                      struct error *error)
{
    const struct store_query query = {.table = &tables[TABLE_PROFILES],
                                      .filters = filter,
                                      .filter_count = 1,
                                      .is_descending = true,
                                      .limit = PROFILES_LEARN_MAX};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    for (size_t i = 0; i < rows.count && learnt->count < PROFILES_LEARN_MAX; i++) {
        struct profile *profile = arena_alloc(arena, sizeof(*profile));
        const uint64_t owner = (uint64_t)rows.items[i][PROFILES_ACCOUNT].integer;
        struct error unreadable;
        bool may = false;
        if (has_run(learnt, (uint64_t)rows.items[i][PROFILES_JOB].integer))
            continue;
        if (may_learn(server, arena, account, owner, &may, error) < 0)
            return -1;
        if (may && read_profile(arena, rows.items[i], profile, &unreadable) == 0 &&
            (owner == account || is_common(profile)))
            learnt->runs[learnt->count++] = profile;
    }
    return 0;
}

int profiles_learn(struct server *server, struct arena *arena, uint64_t account,
                   const struct job_signature *signature, struct profiles_learnt *out_learnt,
                   struct error *error)
{
    const struct store_filter filters[] = {
        {"signature", STORE_EQUAL, store_text(text_of(signature->whole))},
        {"task", STORE_EQUAL, store_text(text_of(signature->task))},
        {"account", STORE_EQUAL, store_integer((int64_t)account)},
    };
    struct profiles_learnt learnt = {
        .runs = arena_alloc(arena, PROFILES_LEARN_MAX * sizeof(*learnt.runs))};
    for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++) {
        if (learn_from(server, arena, account, &filters[i], &learnt, error) < 0)
            return -1;
        if (i == 0)
            learnt.same_count = learnt.count;
    }
    *out_learnt = learnt;
    return 0;
}
