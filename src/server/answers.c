#include "server/answers.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "server/routes.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE_MAX = 8192, ETAG_SIZE = 40 };

struct kept_answer {
    struct list_node node; /* by use, the latest last */
    uint64_t hash;
    struct http_body *body;
    size_t size; /* of all of it */
    char etag[ETAG_SIZE];
    uint32_t key_size, mark_count;
    struct version_mark marks[]; /* then the key */
};

struct answers {
    const struct versions *versions;
    size_t bytes_max;
    struct map map; /* hash of the key -> struct kept_answer */
    struct list by_use;
    uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* random: nobody can choose keys that collide */
    uint64_t etag_base, etag_count;
    struct answers_counts counts;

    /* The answer under way. */
    uint64_t request_id; /* 0: none */
    uint64_t hash;
    struct buffer key;
    struct version_marks marks;
};

struct answers *answers_new(const struct versions *versions, size_t bytes_max)
{
    struct answers *answers = calloc(1, sizeof(*answers));
    ASSERT(answers);
    answers->versions = versions;
    answers->bytes_max = bytes_max;
    map_init(&answers->map);
    list_init(&answers->by_use);
    buffer_init(&answers->key, KEY_SIZE_MAX);
    crypto_shorthash_keygen(answers->hash_key);
    randombytes_buf(&answers->etag_base, sizeof(answers->etag_base));
    return answers;
}

static char *key_of(struct kept_answer *kept)
{
    return (char *)&kept->marks[kept->mark_count];
}

static void drop(struct answers *answers, struct kept_answer *kept)
{
    map_remove(&answers->map, kept->hash);
    list_remove(&kept->node);
    answers->counts.bytes -= kept->size;
    answers->counts.count--;
    http_body_unref(kept->body);
    free(kept);
}

void answers_free(struct answers *answers)
{
    if (!answers)
        return;
    while (!list_is_empty(&answers->by_use))
        drop(answers, LIST_ITEM(answers->by_use.head.next, struct kept_answer, node));
    map_done(&answers->map);
    buffer_done(&answers->key);
    free(answers);
}

/* What is shown may differ from one account to the next, so each has its own. */
static void make_key(struct answers *answers, const struct http_request *request)
{
    const uint64_t account = route_caller(request)->account;
    buffer_clear(&answers->key);
    buffer_append(&answers->key, &account, sizeof(account));
    http_request_target(request, &answers->key);
    uint8_t hash[crypto_shorthash_BYTES];
    crypto_shorthash(hash, answers->key.data, answers->key.size, answers->hash_key);
    memcpy(&answers->hash, hash, sizeof(answers->hash));
}

static void add_header(struct http_request *request, const char *name, const char *value)
{
    struct error error;
    if (http_reply_header(request, name, value, &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
}

static void reply(struct http_request *request, const struct kept_answer *kept)
{
    add_header(request, "ETag", kept->etag);
    add_header(request, "Cache-Control", "private, no-cache");
    if (text_equal(http_request_header(request, "If-None-Match"), text_of(kept->etag)))
        http_reply_static(request, 304, NULL, TEXT(""));
    else
        http_reply_body(request, 200, "application/json", kept->body);
}

static struct kept_answer *find(struct answers *answers)
{
    struct kept_answer *kept = map_get(&answers->map, answers->hash);
    if (!kept)
        return NULL;
    if (kept->key_size == answers->key.size &&
        !memcmp(key_of(kept), answers->key.data, kept->key_size) &&
        versions_hold(answers->versions, kept->marks, kept->mark_count))
        return kept;
    drop(answers, kept);
    return NULL;
}

bool answers_reply(struct answers *answers, struct http_request *request)
{
    make_key(answers, request);
    answers->request_id = 0;
    if (answers->key.is_overflowed)
        return false;
    struct kept_answer *kept = find(answers);
    if (!kept) {
        answers->counts.misses++;
        answers->request_id = http_request_id(request);
        version_marks_clear(&answers->marks, answers->versions);
        return false;
    }
    answers->counts.hits++;
    list_remove(&kept->node);
    list_append(&answers->by_use, &kept->node);
    reply(request, kept);
    return true;
}

void answers_forget(struct answers *answers)
{
    if (answers)
        answers->request_id = 0;
}

static struct kept_answer *keep(struct answers *answers, struct text body)
{
    const struct version_marks *marks = &answers->marks;
    const size_t own_size =
        sizeof(struct kept_answer) + marks->count * sizeof(*marks->items) + answers->key.size;
    struct kept_answer *kept = malloc(own_size);
    ASSERT(kept);
    *kept = (struct kept_answer){.hash = answers->hash,
                                 .body = http_body_new(body),
                                 .size = own_size + body.size,
                                 .key_size = (uint32_t)answers->key.size,
                                 .mark_count = marks->count};
    snprintf(kept->etag, sizeof(kept->etag), "\"%" PRIx64 "-%" PRIx64 "\"", answers->etag_base,
             ++answers->etag_count);
    memcpy(kept->marks, marks->items, marks->count * sizeof(*marks->items));
    memcpy(key_of(kept), answers->key.data, answers->key.size);
    ASSERT(!map_get(&answers->map, kept->hash)); /* `find` dropped what was there */
    map_put(&answers->map, kept->hash, kept);
    list_append(&answers->by_use, &kept->node);
    answers->counts.bytes += kept->size;
    answers->counts.count++;
    while (answers->counts.bytes > answers->bytes_max && answers->by_use.head.next != &kept->node)
        drop(answers, LIST_ITEM(answers->by_use.head.next, struct kept_answer, node));
    return kept;
}

static bool has_room(const struct answers *answers, size_t body_size)
{
    const size_t own_size = sizeof(struct kept_answer) + sizeof(answers->marks) + KEY_SIZE_MAX;
    return answers->counts.bytes + own_size + body_size < answers->bytes_max;
}

static void send_and_keep(struct answers *answers, struct view_answer *answer,
                          struct http_request *request, bool is_minor)
{
    const bool is_kept = answers->request_id == http_request_id(request) &&
                         version_marks_are_whole(&answers->marks, answers->versions) &&
                         !answer->body.is_overflowed &&
                         answer->body.size < answers->bytes_max / 16 &&
                         (!is_minor || has_room(answers, answer->body.size));
    answers->request_id = 0;
    if (!is_kept) {
        view_answer_send(answer, request, 200);
        return;
    }
    struct kept_answer *kept = keep(answers, buffer_text(&answer->body));
    if (is_minor) {
        list_remove(&kept->node);
        list_prepend(&answers->by_use, &kept->node);
    }
    reply(request, kept);
    buffer_done(&answer->body);
}

void answers_send(struct answers *answers, struct view_answer *answer, struct http_request *request)
{
    send_and_keep(answers, answer, request, /* is_minor= */ false);
}

void answers_send_minor(struct answers *answers, struct view_answer *answer,
                        struct http_request *request)
{
    send_and_keep(answers, answer, request, /* is_minor= */ true);
}

void answers_note(struct answers *answers, const struct store_query *query)
{
    if (answers && answers->request_id)
        version_marks_add(&answers->marks, answers->versions, query);
}

void answers_note_key(struct answers *answers, enum table table, uint64_t key)
{
    if (answers && answers->request_id)
        version_marks_add_key(&answers->marks, answers->versions, table, key);
}

struct answers_counts answers_counts(const struct answers *answers)
{
    return answers->counts;
}
