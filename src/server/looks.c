#include "server/looks.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/list.h"
#include "base/memory.h"
#include "sandbox/folder.h"
#include "server/import_run.h"
#include "server/server_internal.h"
#include "train/look.h"

#include <stdlib.h>
#include <unistd.h>

enum { SLOTS = 2, WAITING_MAX = 16, SAID_MAX = 2 << 20, FOLDER_SIZE = SERVER_PATH_SIZE + 32 };

struct look_order {
    struct list_node node; /* while it waits */
    struct arena *arena;
    const char *name;
    struct text bytes;
    looks_done *done;
    void *context;
};

struct slot {
    struct looks *looks;
    struct look_order *order; /* NULL: free */
    struct import_run *run;
    const char *path; /* of the file, in the order's arena */
    char folder[FOLDER_SIZE], state[FOLDER_SIZE];
};

struct looks {
    struct server *server;
    struct slot slots[SLOTS];
    struct list waiting;
    size_t waiting_count;
};

static void begin_next(struct looks *looks);

struct looks *looks_new(struct server *server)
{
    struct looks *looks = memory_zeroed(1, sizeof(*looks));
    looks->server = server;
    list_init(&looks->waiting);
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &looks->slots[i];
        slot->looks = looks;
        snprintf(slot->folder, sizeof(slot->folder), "%s/imports/look-%zu",
                 server->options.data_dir, i);
        snprintf(slot->state, sizeof(slot->state), "%s/imports/look-%zu/state",
                 server->options.data_dir, i);
    }
    return looks;
}

int looks_open(struct looks *looks, struct error *error)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &looks->slots[i];
        char data[sizeof(slot->state)];
        snprintf(data, sizeof(data), "%s/data", slot->folder);
        if (folder_make(slot->folder, 0700, error) < 0 || folder_remove(data, error) < 0 ||
            folder_make(data, 0755, error) < 0 || folder_make(slot->state, 0700, error) < 0)
            return -1;
    }
    return 0;
}

static void free_order(struct look_order *order)
{
    if (order)
        arena_free(order->arena); /* it lies in there itself */
}

void looks_free(struct looks *looks)
{
    if (!looks)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        import_run_free(looks->slots[i].run);
        free_order(looks->slots[i].order);
    }
    LIST_EACH(&looks->waiting, node)
    free_order(LIST_ITEM(node, struct look_order, node));
    free(looks);
}

/* ---- One look -------------------------------------------------------------------------------- */

static int read_said(const struct slot *slot, struct look *out_look, struct error *error)
{
    struct buffer said AUTO_BUFFER;
    buffer_init(&said, SAID_MAX);
    if (import_run_read(slot->run, &said, error) < 0)
        return -1;
    if (json_read(slot->order->arena, buffer_text(&said), &look_schema, out_look, error) < 0) {
        error->code = ERROR_UNAVAILABLE;
        return error_wrap(error, "what it looks like was not told");
    }
    return 0;
}

static void looked(void *context, const struct error *error)
{
    struct slot *slot = context;
    struct look_order *order = slot->order;
    struct look look = {0};
    struct error problem;
    if (!error && read_said(slot, &look, &problem) < 0)
        error = &problem;
    import_run_free(TAKE(slot->run));
    unlink(slot->path);
    slot->order = NULL;
    order->done(order->context, error ? NULL : &look, error);
    free_order(order);
    begin_next(slot->looks);
}

static int begin(struct slot *slot, struct error *error)
{
    const struct look_order *order = slot->order;
    const char *argv[] = {slot->state,
                          slot->folder,
                          "look",
                          order->name,
                          order->bytes.size < LOOK_BYTES_MAX ? "whole" : "start",
                          NULL};
    const struct import_run_options options = {
        .command = "import-run", .argv = argv, .on_done = looked, .context = slot};
    slot->path = arena_format(order->arena, "%s/data/%s", slot->folder, order->name);
    if (file_replace(slot->path, &order->bytes, 1, 0644, error) == 0 &&
        import_run_start(slot->looks->server, &options, &slot->run, error) == 0)
        return 0;
    unlink(slot->path); /* it is not for the next one to see */
    return -1;
}

static struct slot *find_free(struct looks *looks)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (!looks->slots[i].order)
            return &looks->slots[i];
    return NULL;
}

static void begin_next(struct looks *looks)
{
    struct slot *slot;
    while (looks->waiting_count && (slot = find_free(looks))) {
        struct error error;
        slot->order = LIST_ITEM(list_take_first(&looks->waiting), struct look_order, node);
        looks->waiting_count--;
        if (begin(slot, &error) == 0)
            continue;
        struct look_order *order = slot->order;
        slot->order = NULL;
        order->done(order->context, NULL, &error);
        free_order(order);
    }
}

void looks_add(struct looks *looks, struct text name, struct text bytes, looks_done *done,
               void *context)
{
    struct error error;
    if (looks->waiting_count == WAITING_MAX) {
        error_fill(&error, ERROR_UNAVAILABLE, "too many files are being looked at; try again");
        done(context, NULL, &error);
        return;
    }
    struct arena *arena = arena_new(0);
    struct look_order *order = arena_alloc(arena, sizeof(*order));
    *order = (struct look_order){.arena = arena,
                                 .name = arena_copy_string(arena, name),
                                 .bytes = arena_copy_text(arena, bytes),
                                 .done = done,
                                 .context = context};
    list_append(&looks->waiting, &order->node);
    looks->waiting_count++;
    begin_next(looks);
}
