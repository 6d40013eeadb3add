/* Profiles, predictions: what was foretold of a job, and how it turned out. */
#include "server/profiles.h"
#include "server/query.h"

enum { PREDICTION_SIZE_MAX = 2048, RULE_SIZE_MAX = 32, OUTCOMES_MAX = 64 };

static const struct json_field range_fields[] = {
    {"low", JSON_I64, offsetof(struct prediction_range, low), .is_required = true,
     .maximum = INT64_MAX},
    {"expected", JSON_I64, offsetof(struct prediction_range, expected), .is_required = true,
     .maximum = INT64_MAX},
    {"high", JSON_I64, offsetof(struct prediction_range, high), .is_required = true,
     .maximum = INT64_MAX},
};
static const struct json_schema range_schema =
    JSON_SCHEMA("range", range_fields, struct prediction_range);

static const struct json_field told_fields[] = {
    {"rule", JSON_TEXT, offsetof(struct prediction_told, rule), .is_required = true,
     .size_max = RULE_SIZE_MAX},
    {"is_bound", JSON_BOOL, offsetof(struct prediction_told, is_bound)},
    {"time_ms", JSON_OBJECT, offsetof(struct prediction_told, time_ms), .is_required = true,
     .schema = &range_schema},
    {"cost_micro", JSON_OBJECT, offsetof(struct prediction_told, cost_micro), .is_required = true,
     .schema = &range_schema},
};
const struct json_schema prediction_schema =
    JSON_SCHEMA("prediction", told_fields, struct prediction_told);

void profiles_put_prediction(struct store_batch *batch, const struct profile *profile,
                             const struct prediction_told *told, int64_t now_ms)
{
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json, PREDICTION_SIZE_MAX);
    json_writer_init(&writer, &json);
    json_write(&writer, &prediction_schema, told);
    const struct store_value values[PREDICTIONS_COLUMN_COUNT] = {
        [PREDICTIONS_JOB] = store_integer((int64_t)profile->job),
        [PREDICTIONS_ACCOUNT] = store_integer((int64_t)profile->account),
        [PREDICTIONS_TASK] = store_text(text_of(profile->signature.task)),
        [PREDICTIONS_CREATED_MS] = store_integer(now_ms),
        [PREDICTIONS_JSON] = store_text(buffer_text(&json)),
    };
    store_batch_put(batch, &tables[TABLE_PREDICTIONS], values, PREDICTIONS_COLUMN_COUNT);
}

/* A run that did not succeed says nothing of how long it would have taken. */
static void settle(const struct profile *profile, struct prediction_outcome *outcome)
{
    outcome->is_over = profile->state == JOB_STATE_SUCCEEDED && profile->started_ms > 0 &&
                       profile->ended_ms > profile->started_ms;
    if (!outcome->is_over)
        return;
    outcome->time_ms = profile->ended_ms - profile->started_ms;
    outcome->cost_micro = profile->spent_micro;
}

static int read_told(struct arena *arena, const struct store_value *row,
                     struct prediction_outcome *out, struct error *error)
{
    *out = (struct prediction_outcome){.job = (uint64_t)row[PREDICTIONS_JOB].integer};
    return json_read_written(arena, row[PREDICTIONS_JSON].bytes, &prediction_schema, &out->told,
                             error);
}

int profiles_prediction(struct server *server, struct arena *arena, uint64_t job,
                        const struct profile *profile,
                        const struct prediction_outcome **out_outcome, struct error *error)
{
    const struct store_value *row = NULL;
    *out_outcome = NULL;
    if (query_one(server, arena, TABLE_PREDICTIONS, "job", store_integer((int64_t)job), &row,
                  error) < 0)
        return -1;
    if (!row)
        return 0;
    struct prediction_outcome *outcome = arena_alloc(arena, sizeof(*outcome));
    if (read_told(arena, row, outcome, error) < 0)
        return -1;
    settle(profile, outcome);
    *out_outcome = outcome;
    return 0;
}

int profiles_outcomes(struct server *server, struct arena *arena, uint64_t account,
                      const char *task, struct prediction_outcomes *out_outcomes,
                      struct error *error)
{
    const struct store_filter filters[] = {
        {"task", STORE_EQUAL, store_text(text_of(task))},
        {"account", STORE_EQUAL, store_integer((int64_t)account)},
    };
    const struct store_query query = {.table = &tables[TABLE_PREDICTIONS],
                                      .filters = filters,
                                      .filter_count = 2,
                                      .is_descending = true,
                                      .limit = OUTCOMES_MAX};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    struct prediction_outcome *items = arena_alloc(arena, (rows.count + 1) * sizeof(*items));
    size_t count = 0;
    for (size_t i = 0; i < rows.count; i++) {
        struct profile profile;
        struct error unreadable;
        bool is_there = false;
        if (read_told(arena, rows.items[i], &items[count], &unreadable) < 0)
            continue;
        if (profiles_find(server, arena, items[count].job, &profile, &is_there, error) < 0)
            return -1;
        if (is_there)
            settle(&profile, &items[count]);
        count += is_there && items[count].is_over && !items[count].told.is_bound;
    }
    *out_outcomes = (struct prediction_outcomes){items, count};
    return 0;
}
