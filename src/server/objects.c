#include "server/objects.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "server/holdings.h"
#include "server/objects_internal.h"
#include "server/query.h"
#include "server/routes.h"

#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { LOAD_ROWS = 5000, WRITES_MAX = 512 /* that wait for one thread */ };

/* A change on its way to the store. */
struct change {
    struct engine_request request;
    struct objects *objects; /* NULL: the server has ended */
    struct server *server;
    struct arena *arena;
    struct background_task task; /* that waits for the disk with the bytes */
    struct blob_writer *writer;
    struct blob_hash hash; /* of them */
    bool has_failed;       /* to write them */
    struct error reason;
    uint64_t http_id;             /* 0: nobody asked */
    struct objects_change wanted; /* in the arena */
    int64_t stored_ms;
    uint64_t *waiting; /* requests */
    size_t waiting_count;
};

struct objects *objects_new(struct server *server)
{
    struct objects *objects = memory_zeroed(1, sizeof(*objects));
    objects->server = server;
    map_init(&objects->usages);
    map_init(&objects->changes);
    return objects;
}

void objects_stop(struct objects *objects)
{
    for (int i = 0; objects && i < OBJECTS_WRITERS; i++)
        background_free(TAKE(objects->writers[i]));
}

void objects_free(struct objects *objects)
{
    if (!objects)
        return;
    objects_stop(objects);
    for (size_t i = 0; i < objects->usages.count; i++)
        free(objects->usages.entries[i].value);
    map_done(&objects->usages);
    for (size_t i = 0; i < objects->changes.count; i++)
        ((struct change *)objects->changes.entries[i].value)->objects = NULL;
    map_done(&objects->changes);
    free(objects);
}

int objects_check_name(struct text name, struct error *error)
{
    bool is_start = true; /* of a name between slashes */
    for (size_t i = 0; i < name.size; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        const bool is_letter = c < 0x80 && (isalnum(c) || c == '-' || c == '_');
        if (!is_letter && (is_start || (c != '/' && c != '.')))
            break;
        is_start = c == '/';
        if (i + 1 == name.size && !is_start && name.size < OBJECTS_NAME_SIZE)
            return 0;
    }
    return error_set(
        error, ERROR_INVALID,
        "an object's name is letters, digits, '.', '-', '_' and '/' between names that "
        "do not begin with a dot, %d at most",
        OBJECTS_NAME_SIZE - 1);
}

/* ---- What accounts have ---------------------------------------------------------------------- */

static void add_usage(struct objects *objects, uint64_t account, int64_t bytes, int64_t count)
{
    struct object_usage *usage = map_get(&objects->usages, account);
    if (!usage) {
        usage = memory_zeroed(1, sizeof(*usage));
        map_put(&objects->usages, account, usage);
    }
    usage->bytes += bytes;
    usage->count += count;
    ASSERT(usage->bytes >= 0 && usage->count >= 0);
}

int64_t objects_bytes(const struct objects *objects, uint64_t account)
{
    const struct object_usage *usage = map_get(&objects->usages, account);
    return usage ? usage->bytes : 0;
}

int objects_check_room(struct objects *objects, uint64_t account, int64_t added_bytes,
                       struct error *error)
{
    const struct object_usage *usage = map_get(&objects->usages, account);
    if (usage && usage->count >= OBJECTS_COUNT_MAX)
        return error_set(error, ERROR_EXHAUSTED,
                         "this account has %d objects, the most there may be: delete some first",
                         OBJECTS_COUNT_MAX);
    return holdings_check_bytes(objects->server->holdings, account, added_bytes, error);
}

static int count_row(const struct store_row *row, void *context, struct error *error)
{
    (void)error;
    add_usage(context, (uint64_t)row->values[OBJECTS_ACCOUNT].integer,
              row->values[OBJECTS_SIZE_BYTES].integer, 1);
    return 0;
}

int objects_open(struct objects *objects, struct error *error)
{
    for (int i = 0; i < OBJECTS_WRITERS; i++)
        if (background_open(objects->server->loop, WRITES_MAX, &objects->writers[i], error) < 0)
            return -1;
    struct buffer cursor AUTO_BUFFER;
    struct buffer next AUTO_BUFFER;
    buffer_init(&cursor, 4096);
    buffer_init(&next, 4096);
    do {
        const struct store_query query = {
            .table = &tables[TABLE_OBJECTS], .limit = LOAD_ROWS, .after = buffer_text(&cursor)};
        buffer_clear(&next);
        if (store_read_rows(objects->server->reader, &query, count_row, objects, &next, error) < 0)
            return error_wrap(error, "count the objects");
        buffer_clear(&cursor);
        buffer_append_text(&cursor, buffer_text(&next));
    } while (cursor.size > 0);
    return 0;
}

/* ---- Finding and storing --------------------------------------------------------------------- */

int objects_read_row(struct arena *arena, const struct store_value *row, struct object *out_object,
                     struct error *error)
{
    const struct text bytes = row[OBJECTS_BLOBS].bytes;
    if (bytes.size % BLOB_HASH_SIZE)
        return error_set(error, ERROR_CORRUPT, "an object's blobs cannot be read");
    struct blob_hash *blobs = arena_alloc(arena, bytes.size + 1);
    if (bytes.size)
        memcpy(blobs, bytes.data, bytes.size);
    *out_object = (struct object){.exists = true,
                                  .size_bytes = (uint64_t)row[OBJECTS_SIZE_BYTES].integer,
                                  .blob_count = bytes.size / BLOB_HASH_SIZE,
                                  .blobs = blobs};
    return 0;
}

int objects_find(struct objects *objects, struct arena *arena, const struct object_name *name,
                 struct object *out_object, struct error *error)
{
    const struct store_filter filters[] = {
        {"account", STORE_EQUAL, store_integer((int64_t)name->account)},
        {"name", STORE_EQUAL, store_text(name->name)},
    };
    const struct store_query query = {
        .table = &tables[TABLE_OBJECTS], .filters = filters, .filter_count = 2, .limit = 1};
    struct query_rows rows;
    *out_object = (struct object){0};
    if (query_all(objects->server, arena, &query, &rows, error) < 0)
        return -1;
    return rows.count ? objects_read_row(arena, rows.items[0], out_object, error) : 0;
}

int objects_write(struct objects *objects, struct text bytes, struct blob_writer **out_writer,
                  struct error *error)
{
    uint8_t salt[OBJECTS_SALT_SIZE];
    AUTO(blob_writer) struct blob_writer *writer = NULL;
    randombytes_buf(salt, sizeof(salt));
    if (blob_writer_open(objects->server->blobs, NULL, &writer, error) < 0 ||
        blob_writer_append(writer, salt, sizeof(salt), error) < 0 ||
        (bytes.size && blob_writer_append(writer, bytes.data, bytes.size, error) < 0))
        return -1;
    *out_writer = TAKE(writer);
    return 0;
}

static void drop_blobs(const struct objects *objects, const struct object *object)
{
    struct error error;
    for (size_t i = 0; i < object->blob_count; i++)
        if (blob_store_delete(objects->server->blobs, &object->blobs[i], &error) < 0 &&
            error.code != ERROR_NOT_FOUND)
            log_event(LOG_WARN, "blob_left", "error=\"%s\"", error.message);
}

/* ---- Changing -------------------------------------------------------------------------------- */

enum { CHANGE_KEY_SIZE = sizeof(uint64_t) + OBJECTS_NAME_SIZE };

static struct text change_key(const struct object_name *name, char out[CHANGE_KEY_SIZE])
{
    ASSERT(name->name.size < OBJECTS_NAME_SIZE);
    memcpy(out, &name->account, sizeof(name->account));
    memcpy(out + sizeof(name->account), name->name.data, name->name.size);
    return (struct text){out, sizeof(name->account) + name->name.size};
}

bool objects_is_changing(const struct objects *objects, const struct object_name *name)
{
    char key[CHANGE_KEY_SIZE];
    return map_get_text(&objects->changes, change_key(name, key)) != NULL;
}

bool objects_wait(struct objects *objects, const struct object_name *name,
                  const struct http_request *request)
{
    char key[CHANGE_KEY_SIZE];
    struct change *change = map_get_text(&objects->changes, change_key(name, key));
    if (!change)
        return false;
    change->waiting = realloc(change->waiting, /* one for each connection at most */
                              (change->waiting_count + 1) * sizeof(*change->waiting));
    ASSERT(change->waiting);
    change->waiting[change->waiting_count++] = http_request_id(request);
    return true;
}

static void put_row(struct store_batch *batch, const struct objects_change *wanted,
                    int64_t stored_ms)
{
    const struct store_value row[OBJECTS_COLUMN_COUNT] = {
        [OBJECTS_ACCOUNT] = store_integer((int64_t)wanted->name.account),
        [OBJECTS_NAME] = store_text(wanted->name.name),
        [OBJECTS_SIZE_BYTES] = store_integer((int64_t)wanted->now.size_bytes),
        [OBJECTS_STORED_MS] = store_integer(stored_ms),
        [OBJECTS_BLOBS] = store_blob(wanted->now.blobs, wanted->now.blob_count * BLOB_HASH_SIZE),
    };
    if (wanted->is_gone)
        store_batch_delete(batch, &tables[TABLE_OBJECTS], row, 2);
    else
        store_batch_put(batch, &tables[TABLE_OBJECTS], row, OBJECTS_COLUMN_COUNT);
}

/* Core thread. */
static int put_rows(struct engine_request *request, const struct core *core,
                    struct store_batch *batch, struct error *error)
{
    const struct change *change = (const struct change *)request;
    (void)core, (void)error;
    put_row(batch, &change->wanted, change->stored_ms);
    for (size_t i = 0; i < change->wanted.part_count; i++) {
        const struct store_value key[] = {store_integer((int64_t)change->wanted.name.account),
                                          store_text(change->wanted.parts[i])};
        store_batch_delete(batch, &tables[TABLE_OBJECTS], key, 2);
    }
    return 0;
}

/* Nobody else changes the object, nor the parts that become it. */
static void announce(struct change *change, bool is_begin)
{
    struct map *changes = &change->objects->changes;
    char key[CHANGE_KEY_SIZE];
    for (size_t i = 0; i <= change->wanted.part_count; i++) {
        struct object_name name = change->wanted.name;
        if (i > 0)
            name.name = change->wanted.parts[i - 1];
        if (is_begin)
            map_put_text(changes, change_key(&name, key), change);
        else
            map_remove_text(changes, change_key(&name, key));
    }
}

/* What the account has more, once it is done. */
static void count_change(const struct change *change, int64_t sign)
{
    const struct objects_change *wanted = &change->wanted;
    int64_t bytes = -(int64_t)wanted->before.size_bytes, count = -(int64_t)wanted->before.exists;
    if (!wanted->is_gone) {
        bytes += wanted->part_count ? 0 : (int64_t)wanted->now.size_bytes;
        count += 1 - (int64_t)wanted->part_count;
    }
    add_usage(change->objects, wanted->name.account, sign * bytes, sign * count);
}

static void answer(const struct change *change, const struct error *error)
{
    struct server *server = change->server;
    const struct objects_change *wanted = &change->wanted;
    struct http_request *request =
        server->http && change->http_id ? http_server_find(server->http, change->http_id) : NULL;
    if (!change->http_id && error)
        log_event(LOG_WARN, "object_not_expired", "error=\"%s\"", error->message);
    if (!request)
        return;
    if (error && error->code == ERROR_EXHAUSTED)
        http_reply_problem(request, 507, "storage_full",
                           "the market has no room for more; nothing was stored, try again later");
    else if (error)
        http_reply_error(request, error);
    else
        http_reply(request,
                   wanted->is_gone         ? 204
                   : wanted->before.exists ? 200
                                           : 201,
                   "application/json", TEXT(""));
}

/* Those that waited find what there is now. */
static void call_waiting(const struct change *change)
{
    struct server *server = change->server;
    for (size_t i = 0; i < change->waiting_count; i++) {
        struct http_request *request =
            server->http ? http_server_find(server->http, change->waiting[i]) : NULL;
        if (request)
            route_of(request)->handler(request, server);
    }
}

static void change_done(struct engine_request *request, const struct error *error)
{
    struct change *change = (struct change *)request;
    struct objects *objects = change->objects;
    if (objects) {
        announce(change, /* is_begin= */ false);
        if (error)
            count_change(change, -1);
        if (!error)
            drop_blobs(objects, &change->wanted.before);
        else if (!change->wanted.is_gone && !change->wanted.part_count && change->http_id)
            drop_blobs(objects, &change->wanted.now);
        answer(change, error);
        call_waiting(change);
    }
    blob_writer_free(change->writer);
    arena_free(change->arena);
    free(change->waiting);
    free(change);
}

static void submit(struct change *change)
{
    struct error error;
    if (engine_submit(change->server->engine, &change->request, /* is_internal= */ !change->http_id,
                      &error) < 0)
        change_done(&change->request, &error);
}

/* A thread of its own. */
static void finish_write(struct background_task *task)
{
    struct change *change = LIST_ITEM(task, struct change, task);
    change->has_failed = blob_writer_finish(change->writer, &change->hash, &change->reason) < 0;
}

static void on_written(struct background_task *task)
{
    struct change *change = LIST_ITEM(task, struct change, task);
    if (task->is_dropped || !change->objects) {
        error_fill(&change->reason, ERROR_UNAVAILABLE, "the market is stopping: try again later");
        change->has_failed = true;
    }
    if (change->has_failed) {
        change_done(&change->request, &change->reason);
        return;
    }
    change->wanted.now.blobs = &change->hash;
    change->wanted.now.blob_count = 1;
    submit(change);
}

static struct object copy_object(struct arena *arena, const struct object *object)
{
    struct object copy = *object;
    const struct text bytes = {(const char *)object->blobs, object->blob_count * BLOB_HASH_SIZE};
    copy.blobs = object->blob_count ? (const void *)arena_copy_text(arena, bytes).data : NULL;
    return copy;
}

static void copy_wanted(struct change *change, const struct objects_change *wanted)
{
    struct text *parts = arena_alloc(change->arena, (wanted->part_count + 1) * sizeof(*parts));
    for (size_t i = 0; i < wanted->part_count; i++)
        parts[i] = arena_copy_text(change->arena, wanted->parts[i]);
    change->wanted = *wanted;
    change->wanted.parts = parts;
    change->wanted.name.name = arena_copy_text(change->arena, wanted->name.name);
    change->wanted.before = copy_object(change->arena, &wanted->before);
    change->wanted.now = copy_object(change->arena, &wanted->now);
}

void objects_change(struct objects *objects, uint64_t http_id, const struct objects_change *wanted)
{
    struct server *server = objects->server;
    struct change *change = memory_zeroed(1, sizeof(*change));
    struct error error;
    change->request = (struct engine_request){
        .loop = server->loop, .on_decided = put_rows, .on_done = change_done};
    change->task = (struct background_task){.work = finish_write, .done = on_written};
    change->objects = objects;
    change->server = server;
    change->arena = arena_new(0);
    change->writer = wanted->writer;
    change->http_id = http_id;
    change->stored_ms = clock_utc_ms(server->clock);
    copy_wanted(change, wanted);
    announce(change, /* is_begin= */ true);
    count_change(change, 1);
    struct background *writer = objects->writers[objects->next_writer++ % OBJECTS_WRITERS];
    if (!change->writer)
        submit(change);
    else if (background_submit(writer, &change->task, &error) < 0)
        change_done(&change->request, &error);
}

void objects_apply(struct objects *objects, struct http_request *request,
                   const struct objects_change *wanted)
{
    objects_change(objects, http_request_id(request), wanted);
}
