/* Retention of objects: their blobs go with all that nobody uses (holdings_expire), their names
 * here. */
#include "base/log.h"
#include "server/holdings.h"
#include "server/objects_internal.h"
#include "server/query.h"

enum { EXPIRE_ROWS = 1000 };

static bool is_whole(const struct server *server, const struct object *object)
{
    for (size_t i = 0; i < object->blob_count; i++)
        if (!blob_store_has(server->blobs, &object->blobs[i]))
            return false;
    return true;
}

/* One whose bytes are still used is looked at again after another retention. */
static int expire_row(struct objects *objects, struct arena *arena, const struct store_value *row,
                      struct error *error)
{
    struct objects_change change = {
        .name = {(uint64_t)row[OBJECTS_ACCOUNT].integer, row[OBJECTS_NAME].bytes}};
    if (objects_is_changing(objects, &change.name))
        return 0;
    if (objects_read_row(arena, row, &change.before, error) < 0)
        return -1;
    change.is_gone = !is_whole(objects->server, &change.before);
    if (!change.is_gone) {
        change.now = change.before;
        change.before.blob_count = 0; /* they stay */
    }
    objects_change(objects, 0, &change);
    return 0;
}

static int expire(struct objects *objects, struct error *error)
{
    struct server *server = objects->server;
    AUTO(arena) struct arena *arena = arena_new(0);
    const int64_t before_ms = clock_utc_ms(server->clock) - holdings_keep_ms(server->holdings);
    const struct store_filter filter = {"stored_ms", STORE_LESS, store_integer(before_ms)};
    const struct store_query query = {.table = &tables[TABLE_OBJECTS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .limit = EXPIRE_ROWS};
    struct query_rows rows;
    if (query_all(server, arena, &query, &rows, error) < 0)
        return -1;
    for (size_t i = 0; i < rows.count; i++)
        if (expire_row(objects, arena, rows.items[i], error) < 0)
            return -1;
    return 0;
}

void objects_expire(struct objects *objects)
{
    struct error error;
    if (expire(objects, &error) < 0)
        log_event(LOG_WARN, "objects_not_expired", "error=\"%s\"", error.message);
}
