#include "peer/host.h"

#include "base/file.h"
#include "base/json_schema.h"
#include "peer/watch.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 4096, HASH_SIZE = 16, VALUE_SIZE = 128 };
_Static_assert(HOST_MARK_SIZE == 2 * HASH_SIZE + 1, "hex digits and a zero byte");

static void mark(const uint8_t *key, const char *kind, struct text value, char out[HOST_MARK_SIZE])
{
    uint8_t hash[HASH_SIZE];
    crypto_generichash_state state;
    out[0] = '\0';
    if (value.size == 0)
        return;
    crypto_generichash_init(&state, key, crypto_generichash_KEYBYTES, sizeof(hash));
    crypto_generichash_update(&state, (const uint8_t *)kind, strlen(kind) + 1);
    crypto_generichash_update(&state, (const uint8_t *)value.data, value.size);
    crypto_generichash_final(&state, hash, sizeof(hash));
    text_hex_encode(hash, sizeof(hash), out);
}

struct reading {
    const char *root;
    const uint8_t *key;
    struct host *host;
};

static void mark_file(const char *root, const uint8_t *key, const char *kind, const char *path,
                      char out[HOST_MARK_SIZE])
{
    char value[VALUE_SIZE];
    const bool is_there = watch_read(root, path, value, sizeof(value));
    mark(key, kind, is_there ? text_trim(text_of(value)) : (struct text){0}, out);
}

/* A card that is a piece of hardware and has its own address. */
static void take_card(void *context, const char *folder, const char *name)
{
    struct reading *reading = context;
    struct host *host = reading->host;
    char path[PATH_MAX], device[PATH_MAX];
    snprintf(device, sizeof(device), "%s%s/%s/device", reading->root, folder, name);
    snprintf(path, sizeof(path), "%s/%s/addr_assign_type", folder, name);
    if (host->card_count == HOST_CARDS_MAX || access(device, F_OK) < 0 ||
        watch_read_number(reading->root, path) != 0)
        return;
    snprintf(path, sizeof(path), "%s/%s/address", folder, name);
    mark_file(reading->root, reading->key, "card", path, host->cards[host->card_count]);
    if (host->cards[host->card_count][0])
        host->card_count++;
}

static int compare_marks(const void *left, const void *right)
{
    return strcmp(left, right);
}

void host_read(const char *root, const uint8_t *key, struct host *out_host)
{
    struct host host = {0};
    mark_file(root, key, "installation", "/etc/machine-id", host.installation);
    mark_file(root, key, "board", "/sys/class/dmi/id/product_uuid", host.board);
    struct reading reading = {root, key, &host};
    watch_each(root, "/sys/class/net", take_card, &reading);
    qsort(host.cards, host.card_count, sizeof(host.cards[0]), compare_marks);
    *out_host = host;
}

/* ---- Comparing --------------------------------------------------------------------------------
 */

enum agreement { AGREEMENT_UNKNOWN, AGREEMENT_SAME, AGREEMENT_OTHER };

static enum agreement agree(const char *known, const char *now)
{
    if (!known[0] || !now[0])
        return AGREEMENT_UNKNOWN;
    return strcmp(known, now) == 0 ? AGREEMENT_SAME : AGREEMENT_OTHER;
}

static enum agreement cards_agree(const struct host *known, const struct host *now)
{
    if (known->card_count == 0 || now->card_count == 0)
        return AGREEMENT_UNKNOWN;
    for (size_t i = 0; i < known->card_count; i++)
        for (size_t j = 0; j < now->card_count; j++)
            if (strcmp(known->cards[i], now->cards[j]) == 0)
                return AGREEMENT_SAME;
    return AGREEMENT_OTHER;
}

int host_compare(const struct host *known, const struct host *now, struct error *error)
{
    const enum agreement board = agree(known->board, now->board);
    const enum agreement cards = cards_agree(known, now);
    const char *differs = NULL;
    if (board == AGREEMENT_OTHER)
        differs = "another board";
    else if (agree(known->installation, now->installation) == AGREEMENT_OTHER)
        differs = "another installation (/etc/machine-id)";
    else if (cards == AGREEMENT_OTHER && board != AGREEMENT_SAME)
        differs = "other network cards";
    if (!differs)
        return 0;
    return error_set(error, ERROR_CONFLICT,
                     "this key was made on another machine: this one has %s. A copied disk cannot "
                     "lend under the same key: enrol anew with --new-identity and a code; if it is "
                     "the same machine with new parts, --same-machine",
                     differs);
}

bool host_equal(const struct host *left, const struct host *right)
{
    if (strcmp(left->installation, right->installation) != 0 ||
        strcmp(left->board, right->board) != 0 || left->card_count != right->card_count)
        return false;
    for (size_t i = 0; i < left->card_count; i++)
        if (strcmp(left->cards[i], right->cards[i]) != 0)
            return false;
    return true;
}

/* ---- The file ---------------------------------------------------------------------------------
 */

struct host_record {
    char installation[HOST_MARK_SIZE];
    char board[HOST_MARK_SIZE];
    struct json_array cards; /* of struct text */
};

static const struct json_field host_fields[] = {
    {"installation", JSON_CHARS, offsetof(struct host_record, installation), .is_required = true,
     .size_max = HOST_MARK_SIZE},
    {"board", JSON_CHARS, offsetof(struct host_record, board), .is_required = true,
     .size_max = HOST_MARK_SIZE},
    {"cards", JSON_TEXTS, offsetof(struct host_record, cards), .is_required = true,
     .size_max = HOST_CARDS_MAX},
};
static const struct json_schema host_schema = JSON_SCHEMA("host", host_fields, struct host_record);

static int host_path(const char *state_dir, char out[PATH_MAX], struct error *error)
{
    if (snprintf(out, PATH_MAX, "%s/host.json", state_dir) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    return 0;
}

int host_load(const char *state_dir, struct host *out_host, struct error *error)
{
    char path[PATH_MAX];
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, FILE_SIZE_MAX);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct host_record record = {0};
    if (host_path(state_dir, path, error) < 0 || file_read(path, &json, error) < 0)
        return -1;
    if (json_read(arena, buffer_text(&json), &host_schema, &record, error) < 0) {
        error->code = ERROR_CORRUPT;
        return error_wrap(error, "read \"%s\"", path);
    }
    struct host host = {.card_count = record.cards.count};
    memcpy(host.installation, record.installation, sizeof(host.installation));
    memcpy(host.board, record.board, sizeof(host.board));
    for (size_t i = 0; i < host.card_count; i++)
        if (text_copy(((const struct text *)record.cards.items)[i], host.cards[i],
                      sizeof(host.cards[i]), error) < 0) {
            error->code = ERROR_CORRUPT;
            return error_wrap(error, "read \"%s\"", path);
        }
    *out_host = host;
    return 0;
}

int host_store(const char *state_dir, const struct host *host, struct error *error)
{
    char path[PATH_MAX];
    struct text cards[HOST_CARDS_MAX];
    struct host_record record = {.cards = {cards, host->card_count}};
    for (size_t i = 0; i < host->card_count; i++)
        cards[i] = text_of(host->cards[i]);
    memcpy(record.installation, host->installation, sizeof(record.installation));
    memcpy(record.board, host->board, sizeof(record.board));
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, FILE_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &host_schema, &record);
    if (host_path(state_dir, path, error) < 0 || buffer_check(&json, error) < 0)
        return -1;
    const struct text part = buffer_text(&json);
    return file_replace(path, &part, 1, 0600, error);
}
