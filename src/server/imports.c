#include "server/imports.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/units.h"
#include "sandbox/folder.h"
#include "server/imports_internal.h"
#include "train/look.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FORGET_EVERY_MS = 60000 };

static struct import_order *order_of(struct list_node *node)
{
    return LIST_ITEM(node, struct import_order, node);
}

uint64_t imports_size_max(const struct imports *imports)
{
    const int64_t wanted = imports->server->options.import_size_bytes;
    return (uint64_t)(wanted > 0 ? wanted : IMPORTS_SIZE_BYTES);
}

int import_name_check(struct text name, struct error *error)
{
    if (name.size == 0 || name.size >= IMPORTS_NAME_SIZE || name.data[0] == '.' ||
        memchr(name.data, '/', name.size) || !text_is_plain(name))
        return error_set(error, ERROR_INVALID,
                         "name: a file's name of at most %d bytes, without a folder and with no "
                         "dot first",
                         IMPORTS_NAME_SIZE - 1);
    return 0;
}

/* ---- The table ------------------------------------------------------------------------------- */

static void forget(struct import_order *order)
{
    list_remove(&order->node);
    order->imports->count--;
    import_order_free(order);
}

static void forget_old(void *context)
{
    struct imports *imports = context;
    const int64_t before_ms = clock_utc_ms(imports->server->clock) - IMPORTS_KEEP_MS;
    LIST_EACH(&imports->orders, node)
    {
        struct import_order *order = order_of(node);
        if (order->ended_ms && order->ended_ms < before_ms && !order->is_at_work)
            forget(order);
    }
    loop_timer_start(imports->timer, FORGET_EVERY_MS);
}

static size_t count_of(struct imports *imports, uint64_t account, bool is_open)
{
    size_t count = 0;
    LIST_EACH(&imports->orders, node)
    {
        const struct import_order *order = order_of(node);
        count +=
            order->wish.account == account && !order->is_gone && (!is_open || !order->ended_ms);
    }
    return count;
}

/* Those that came first also ended first, but for some that waited for others'. */
static void make_room(struct imports *imports, uint64_t account)
{
    size_t kept = count_of(imports, account, /* is_open= */ false);
    LIST_EACH(&imports->orders, node)
    {
        struct import_order *order = order_of(node);
        if (kept < IMPORTS_KEPT_MAX)
            return;
        if (order->wish.account != account || !order->ended_ms || order->is_at_work)
            continue;
        kept -= !order->is_gone;
        forget(order);
    }
}

static bool is_reading(struct imports *imports, uint64_t account)
{
    LIST_EACH(&imports->orders, node)
    {
        const struct import_order *order = order_of(node);
        if (order->is_at_work && order->wish.account == account)
            return true;
    }
    return false;
}

/* Begins what may begin. */
static void begin_next(struct imports *imports)
{
    for (size_t slot = 0; slot < IMPORTS_READ_MAX; slot++) {
        if (imports->is_slot_taken[slot])
            continue;
        LIST_EACH(&imports->orders, node)
        {
            struct import_order *order = order_of(node);
            if (order->state != IMPORT_WAITING || is_reading(imports, order->wish.account))
                continue;
            imports->is_slot_taken[slot] = true;
            import_order_begin(order, slot);
            break;
        }
    }
}

void imports_ended(struct import_order *order)
{
    struct imports *imports = order->imports;
    imports->is_slot_taken[order->slot] = false;
    order->is_at_work = false;
    if (order->is_gone)
        forget(order);
    if (!imports->is_stopping)
        begin_next(imports);
}

/* ---- From outside ---------------------------------------------------------------------------- */

struct imports *imports_new(struct server *server)
{
    struct imports *imports = memory_zeroed(1, sizeof(*imports));
    imports->server = server;
    /* After a restart no old number means another import. */
    imports->next_id = (uint64_t)server->started_ms;
    list_init(&imports->orders);
    snprintf(imports->folder, sizeof(imports->folder), "%s/imports", server->options.data_dir);
    return imports;
}

/* Folders of imports have numbers for names. */
static int clear_folder(struct imports *imports, struct error *error)
{
    char path[SERVER_PATH_SIZE + 256];
    DIR *folder = opendir(imports->folder);
    int result = 0;
    if (!folder)
        return error_set_errno(error, errno, "open \"%s\"", imports->folder);
    for (struct dirent *entry; result == 0 && (entry = readdir(folder));) { // NOLINT(concurrency-*)
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "%s/%s", imports->folder, entry->d_name);
        result = folder_remove(path, error);
    }
    closedir(folder);
    return result;
}

int imports_open(struct imports *imports, struct error *error)
{
    char state[SERVER_PATH_SIZE + 32];
    if (folder_make(imports->folder, 0700, error) < 0 || clear_folder(imports, error) < 0)
        return -1;
    for (int slot = 0; slot < IMPORTS_READ_MAX; slot++) {
        snprintf(state, sizeof(state), "%s/state-%d", imports->folder, slot);
        if (folder_make(state, 0700, error) < 0)
            return -1;
    }
    imports->timer = loop_timer_new(imports->server->loop, forget_old, imports);
    loop_timer_start(imports->timer, FORGET_EVERY_MS);
    return 0;
}

void imports_stop(struct imports *imports)
{
    if (!imports)
        return;
    imports->is_stopping = true;
    LIST_EACH(&imports->orders, node)
    import_order_abandon(order_of(node));
    loop_timer_free(TAKE(imports->timer));
}

void imports_free(struct imports *imports)
{
    if (!imports)
        return;
    LIST_EACH(&imports->orders, node)
    forget(order_of(node));
    free(imports);
}

/* 1: it is there already. */
static int find_repeated(struct imports *imports, const struct import_wish *wish,
                         struct import_order **out_order, struct error *error)
{
    LIST_EACH(&imports->orders, node)
    {
        struct import_order *order = order_of(node);
        if (!wish->has_key || !order->wish.has_key || order->is_gone ||
            memcmp(order->wish.key_hash, wish->key_hash, sizeof(wish->key_hash)) != 0)
            continue;
        if (memcmp(order->wish.request_hash, wish->request_hash, sizeof(wish->request_hash)) != 0)
            return error_set(error, ERROR_CONFLICT,
                             "this Idempotency-Key was used for another request; take a new one");
        *out_order = order;
        return 1;
    }
    return 0;
}

static int check_wish(struct imports *imports, struct import_order *order,
                      const struct import_wish *wish, struct error *error)
{
    if (wish->fetch.size)
        return 0;
    if (holdings_claim_file(imports->server->holdings, order->arena, wish->account, &wish->manifest,
                            &order->manifest, error) < 0)
        return error_wrap(error, "files");
    if (order->manifest.size_bytes == 0)
        return error_set(error, ERROR_INVALID, "files: it is empty");
    char size[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
    if (order->manifest.size_bytes > imports_size_max(imports))
        return error_set(error, ERROR_INVALID, "files: %s are more than the %s this market reads",
                         units_format_bytes((int64_t)order->manifest.size_bytes, size),
                         units_format_bytes((int64_t)imports_size_max(imports), most));
    return 0;
}

int imports_add(struct imports *imports, const struct import_wish *wish,
                struct import_order **out_order, struct error *error)
{
    const int repeated = find_repeated(imports, wish, out_order, error);
    if (repeated != 0)
        return repeated < 0 ? -1 : 0;
    if (count_of(imports, wish->account, /* is_open= */ true) >= IMPORTS_OPEN_MAX)
        return error_set(error, ERROR_EXHAUSTED,
                         "%d imports of this account are under way; wait for one of them",
                         IMPORTS_OPEN_MAX);
    if (imports->count >= IMPORTS_COUNT_MAX || imports->is_stopping)
        return error_set(error, ERROR_UNAVAILABLE, "too much is being read; try again later");
    struct import_order *order = memory_zeroed(1, sizeof(*order));
    order->imports = imports;
    order->arena = arena_new(0);
    order->progress_fd = -1;
    buffer_init(&order->request, IMPORTS_REQUEST_MAX);
    if (check_wish(imports, order, wish, error) < 0) {
        import_order_free(order);
        return -1;
    }
    make_room(imports, wish->account);
    order->id = imports->next_id++;
    order->wish = *wish;
    order->wish.name = arena_copy_text(order->arena, wish->name);
    order->wish.spec = arena_copy_text(order->arena, wish->spec);
    order->wish.fetch = (struct text){0}; /* what it may hold is in one place, and goes early */
    buffer_append_text(&order->request, wish->fetch);
    order->total_bytes = order->manifest.size_bytes;
    const struct text type = text_of(order->manifest.media_type);
    order->is_folder = text_equal(type, TEXT("application/x-tar")) ||
                       text_equal(type, TEXT("application/zip")) ||
                       (look_is_archive(wish->name) && !wish->is_folder_fetched);
    list_append(&imports->orders, &order->node);
    imports->count++;
    log_event(LOG_INFO, "import_added",
              "import=%" PRIu64 " account=%" PRIu64 " bytes=%" PRIu64 " fetched=%d", order->id,
              wish->account, order->total_bytes, wish->fetch.size > 0);
    begin_next(imports);
    *out_order = order;
    return 0;
}

struct import_order *imports_find(const struct imports *imports, uint64_t account, uint64_t id)
{
    LIST_EACH(&imports->orders, node)
    {
        struct import_order *order = LIST_ITEM(node, struct import_order, node);
        if (order->id == id && order->wish.account == account && !order->is_gone)
            return order;
    }
    return NULL;
}

bool imports_remove(struct imports *imports, uint64_t account, uint64_t id)
{
    struct import_order *order = imports_find(imports, account, id);
    if (!order)
        return false;
    order->is_gone = true;
    if (order->is_at_work)
        import_order_stop(order);
    else
        forget(order);
    return true;
}
