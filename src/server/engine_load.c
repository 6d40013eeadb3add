#include "server/engine_load.h"

#include "base/log.h"

#include <inttypes.h>

enum { REBUILD_EVENTS = 5000 };

struct rebuild {
    struct store *store;
    struct projection *projection;
    struct store_batch *batch;
    uint32_t waiting;
};

static int commit_rebuilt(void *context, struct error *error)
{
    struct rebuild *rebuild = context;
    if (store_commit(rebuild->store, rebuild->batch, error) < 0)
        return -1;
    store_batch_clear(rebuild->batch);
    return 0;
}

static int rebuild_event(void *context, const struct core *core, const struct event *event,
                         struct error *error)
{
    struct rebuild *rebuild = context;
    projection_event(rebuild->projection, core, event, rebuild->batch);
    if (++rebuild->waiting < REBUILD_EVENTS)
        return 0;
    rebuild->waiting = 0;
    projection_flush_statements(rebuild->projection, rebuild->batch);
    return commit_rebuilt(rebuild, error);
}

static int rebuild_tables(struct store_reader *reader, struct store *store,
                          struct projection *projection, struct error *error)
{
    log_event(LOG_INFO, "rebuilding_tables", "events=%" PRIu64, store_head(store).sequence);
    if (store_tables_clear(store, error) < 0)
        return -1;
    AUTO(core) struct core *core = core_new();
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    struct rebuild rebuild = {.store = store, .projection = projection, .batch = batch};
    projection_reset(projection, core);
    if (engine_replay(reader, 1, core, rebuild_event, &rebuild, error) < 0)
        return -1;
    projection_flush_statements(projection, batch);
    projection_reset(projection, core);
    if (projection_write_all(projection, core, batch, commit_rebuilt, &rebuild, error) < 0)
        return -1;
    return store_tables_built(store, error);
}

static int load_snapshot(struct store_reader *reader, struct core **out_core,
                         uint64_t *out_sequence, bool *out_is_older, struct error *error)
{
    *out_is_older = false;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, STORE_SNAPSHOT_BYTES_MAX);
    struct store_head head;
    if (store_snapshot_load(reader, &head, &bytes, error) < 0)
        return -1;
    *out_sequence = head.sequence;
    if (head.sequence == 0) {
        *out_core = core_new();
        return 0;
    }
    struct error reason;
    if (core_snapshot_read(buffer_text(&bytes), out_core, &reason) == 0)
        return 0;
    /* A snapshot of an older program: the events say the same, only slower. */
    log_event(LOG_WARN, "snapshot_ignored", "error=\"%s\"", reason.message);
    *out_is_older = true;
    *out_sequence = 0;
    *out_core = core_new();
    return 0;
}

/* An older program wrote rows without the columns that were added since. */
static int write_rows_again(struct store *store, struct projection *projection,
                            const struct core *core, struct error *error)
{
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    struct rebuild rebuild = {.store = store, .projection = projection, .batch = batch};
    return projection_write_all(projection, core, batch, commit_rebuilt, &rebuild, error);
}

int engine_load(const struct store_options *options, struct store *store,
                struct projection *projection, struct core **out_core,
                uint64_t *out_snapshot_sequence, struct error *error)
{
    AUTO(store_reader) struct store_reader *reader = NULL;
    if (store_reader_open(options, &reader, error) < 0)
        return -1;
    if (store_needs_rebuild(store) && rebuild_tables(reader, store, projection, error) < 0)
        return error_wrap(error, "build the tables");
    AUTO(core) struct core *core = NULL;
    uint64_t sequence = 0;
    bool is_older = false;
    if (load_snapshot(reader, &core, &sequence, &is_older, error) < 0)
        return error_wrap(error, "load the snapshot");
    if (engine_replay(reader, sequence + 1, core, NULL, NULL, error) < 0)
        return error_wrap(error, "replay the log");
    if (core_check(core, error) < 0)
        return -1;
    projection_reset(projection, core);
    if (is_older && write_rows_again(store, projection, core, error) < 0)
        return error_wrap(error, "write the tables again");
    *out_core = TAKE(core);
    *out_snapshot_sequence = sequence;
    return 0;
}
