#include "server/answers.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "server/packer.h"
#include "server/page.h"
#include "server/routes.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE_MAX = 8192, ETAG_SIZE = 40, BODY_SIZE_MAX = 64 << 20 };

struct answer_draft {
    uint64_t request_id; /* 0: none */
    uint64_t hash;       /* of the key */
    struct text key;
    int64_t made_ms, until_ms; /* when it holds; until_ms 0: always */
    struct version_marks marks;
};

struct kept_answer {
    struct list_node node; /* by use, the latest last */
    uint64_t hash;
    struct http_body *body; /* NULL: packed */
    struct packed *packed;
    size_t size; /* of all of it */
    int64_t made_ms, until_ms;
    uint64_t etag;
    uint32_t key_size, mark_count;
    struct version_mark marks[]; /* then the key */
};

struct answers {
    const struct versions *versions;
    const struct clock *clock;
    size_t bytes_max;
    struct map map; /* hash of the key -> struct kept_answer */
    struct list by_use;
    struct packer *packer;
    uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* random: nobody can choose keys that collide */
    uint64_t etag_base, etag_count;
    struct answers_counts counts;
    struct buffer key;
    struct answer_draft under_way;
};

struct answers *answers_new(const struct versions *versions, const struct clock *clock,
                            size_t bytes_max)
{
    struct answers *answers = calloc(1, sizeof(*answers));
    ASSERT(answers);
    answers->versions = versions;
    answers->clock = clock;
    answers->bytes_max = bytes_max;
    map_init(&answers->map);
    list_init(&answers->by_use);
    answers->packer = packer_new();
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
    packed_free(kept->packed);
    free(kept);
}

void answers_free(struct answers *answers)
{
    if (!answers)
        return;
    while (!list_is_empty(&answers->by_use))
        drop(answers, LIST_ITEM(answers->by_use.head.next, struct kept_answer, node));
    map_done(&answers->map);
    packer_free(answers->packer);
    buffer_done(&answers->key);
    free(answers);
}

/* ---- Sending again --------------------------------------------------------------------------- */

/* What is shown may differ from one account to the next, so each has its own. */
static void make_key(struct answers *answers, const struct http_request *request)
{
    const uint64_t account = route_caller(request)->account;
    buffer_clear(&answers->key);
    buffer_append(&answers->key, &account, sizeof(account));
    http_request_target(request, &answers->key);
    uint8_t hash[crypto_shorthash_BYTES];
    crypto_shorthash(hash, answers->key.data, answers->key.size, answers->hash_key);
    memcpy(&answers->under_way.hash, hash, sizeof(answers->under_way.hash));
    answers->under_way.key = buffer_text(&answers->key);
}

static void add_header(struct http_request *request, const char *name, const char *value)
{
    struct error error;
    if (http_reply_header(request, name, value, &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
}

static void reply(const struct answers *answers, struct http_request *request,
                  const struct kept_answer *kept)
{
    char etag[ETAG_SIZE];
    snprintf(etag, sizeof(etag), "\"%" PRIx64 "-%" PRIx64 "\"", answers->etag_base, kept->etag);
    add_header(request, "ETag", etag);
    add_header(request, "Cache-Control", "private, no-cache");
    if (page_etag_matches(etag, http_request_header(request, "If-None-Match"))) {
        http_reply_static(request, 304, NULL, TEXT(""));
        return;
    }
    if (kept->body) {
        http_reply_body(request, 200, "application/json", kept->body);
        return;
    }
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, BODY_SIZE_MAX);
    packed_read(kept->packed, answers->packer, &body);
    http_reply_take(request, 200, "application/json", &body);
}

static bool is_in_time(const struct answers *answers, const struct kept_answer *kept)
{
    if (!kept->until_ms)
        return true;
    const int64_t now_ms = clock_utc_ms(answers->clock);
    return kept->made_ms <= now_ms && now_ms < kept->until_ms;
}

static struct kept_answer *find(struct answers *answers)
{
    const struct answer_draft *asked = &answers->under_way;
    struct kept_answer *kept = map_get(&answers->map, asked->hash);
    if (!kept)
        return NULL;
    if (kept->key_size == asked->key.size &&
        !memcmp(key_of(kept), asked->key.data, kept->key_size) &&
        versions_hold(answers->versions, kept->marks, kept->mark_count) &&
        is_in_time(answers, kept))
        return kept;
    drop(answers, kept);
    return NULL;
}

bool answers_reply(struct answers *answers, struct http_request *request)
{
    make_key(answers, request);
    answers->under_way.request_id = 0;
    if (answers->key.is_overflowed)
        return false;
    struct kept_answer *kept = find(answers);
    if (!kept) {
        answers->counts.misses++;
        answers->under_way.request_id = http_request_id(request);
        answers->under_way.made_ms = clock_utc_ms(answers->clock);
        answers->under_way.until_ms = 0;
        version_marks_clear(&answers->under_way.marks, answers->versions);
        return false;
    }
    answers->counts.hits++;
    list_remove(&kept->node);
    list_append(&answers->by_use, &kept->node);
    reply(answers, request, kept);
    return true;
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static struct kept_answer *keep(struct answers *answers, const struct answer_draft *draft,
                                struct text body, bool is_minor)
{
    const struct version_marks *marks = &draft->marks;
    const size_t own_size =
        sizeof(struct kept_answer) + marks->count * sizeof(*marks->items) + draft->key.size;
    struct kept_answer *kept = malloc(own_size);
    ASSERT(kept);
    *kept = (struct kept_answer){.hash = draft->hash,
                                 .made_ms = draft->made_ms,
                                 .until_ms = draft->until_ms,
                                 .etag = ++answers->etag_count,
                                 .key_size = (uint32_t)draft->key.size,
                                 .mark_count = marks->count};
    if (is_minor)
        kept->packed = packed_new(answers->packer, body);
    else
        kept->body = http_body_new(body);
    kept->size = own_size + (is_minor ? packed_memory(kept->packed) : body.size);
    memcpy(kept->marks, marks->items, marks->count * sizeof(*marks->items));
    memcpy(key_of(kept), draft->key.data, draft->key.size);
    struct kept_answer *old = map_get(&answers->map, kept->hash);
    if (old) /* the same was asked for twice before it was answered */
        drop(answers, old);
    map_put(&answers->map, kept->hash, kept);
    if (is_minor)
        list_prepend(&answers->by_use, &kept->node);
    else
        list_append(&answers->by_use, &kept->node);
    answers->counts.bytes += kept->size;
    answers->counts.count++;
    while (answers->counts.bytes > answers->bytes_max && answers->by_use.head.next != &kept->node) {
        drop(answers, LIST_ITEM(answers->by_use.head.next, struct kept_answer, node));
        answers->counts.evictions++;
    }
    return kept;
}

static bool has_room(const struct answers *answers, size_t body_size)
{
    const size_t own_size =
        sizeof(struct kept_answer) + sizeof(answers->under_way.marks) + KEY_SIZE_MAX;
    return answers->counts.bytes + own_size + body_size < answers->bytes_max;
}

static void finish(struct answers *answers, const struct answer_draft *draft, bool is_true,
                   bool is_minor, struct view_answer *answer, struct http_request *request)
{
    if (!is_true || answer->body.is_overflowed || answer->body.size >= answers->bytes_max / 16 ||
        (is_minor && !has_room(answers, answer->body.size))) {
        view_answer_send(answer, request, 200);
        return;
    }
    reply(answers, request, keep(answers, draft, buffer_text(&answer->body), is_minor));
    buffer_done(&answer->body);
}

static void finish_under_way(struct answers *answers, bool is_minor, struct view_answer *answer,
                             struct http_request *request)
{
    const struct answer_draft *draft = &answers->under_way;
    const bool is_true = draft->request_id == http_request_id(request) &&
                         version_marks_are_whole(&draft->marks, answers->versions);
    answers_forget(answers);
    finish(answers, draft, is_true, is_minor, answer, request);
}

void answers_send(struct answers *answers, struct view_answer *answer, struct http_request *request)
{
    finish_under_way(answers, /* is_minor= */ false, answer, request);
}

void answers_send_minor(struct answers *answers, struct view_answer *answer,
                        struct http_request *request)
{
    finish_under_way(answers, /* is_minor= */ true, answer, request);
}

void answers_until(struct answers *answers, int64_t until_ms)
{
    if (answers)
        answers->under_way.until_ms = until_ms;
}

void answers_forget(struct answers *answers)
{
    if (answers)
        answers->under_way.request_id = 0;
}

/* ---- What the core answers ------------------------------------------------------------------- */

struct answer_draft *answers_draft(struct answers *answers, struct arena *arena)
{
    const struct answer_draft *under_way = &answers->under_way;
    if (!under_way->request_id || under_way->marks.is_overflowed)
        return NULL;
    struct answer_draft *draft = arena_alloc(arena, sizeof(*draft));
    *draft = *under_way;
    draft->key = arena_copy_text(arena, under_way->key);
    return draft;
}

void answer_draft_until(struct answer_draft *draft, int64_t until_ms)
{
    if (draft)
        draft->until_ms = until_ms;
}

/* The core's state is never older than the marks, so it is as they say while they hold. */
void answers_send_draft(struct answers *answers, const struct answer_draft *draft,
                        struct view_answer *answer, struct http_request *request)
{
    const bool is_true =
        draft && versions_hold(answers->versions, draft->marks.items, draft->marks.count);
    finish(answers, draft, is_true, /* is_minor= */ false, answer, request);
}

/* ---- What it is made of ---------------------------------------------------------------------- */

void answers_note(struct answers *answers, const struct store_query *query)
{
    if (answers && answers->under_way.request_id)
        version_marks_add(&answers->under_way.marks, answers->versions, query);
}

void answers_note_key(struct answers *answers, enum table table, uint64_t key)
{
    if (answers && answers->under_way.request_id)
        version_marks_add_key(&answers->under_way.marks, answers->versions, table, key);
}

void answers_note_prices(struct answers *answers)
{
    if (answers && answers->under_way.request_id)
        version_marks_add_prices(&answers->under_way.marks, answers->versions);
}

struct answers_counts answers_counts(const struct answers *answers)
{
    return answers->counts;
}
