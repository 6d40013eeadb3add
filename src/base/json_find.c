#include "base/json.h"

#include <string.h>

struct scan {
    const char *at;
    const char *end;
};

static void skip_space(struct scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
}

static bool skip_byte(struct scan *scan, char byte)
{
    skip_space(scan);
    if (scan->at == scan->end || *scan->at != byte)
        return false;
    scan->at++;
    return true;
}

/* The bytes between two quotes, with escapes as they stand. */
static bool scan_string(struct scan *scan, struct text *out)
{
    if (!skip_byte(scan, '"'))
        return false;
    const char *start = scan->at;
    for (; scan->at < scan->end && *scan->at != '"'; scan->at++)
        if (*scan->at == '\\' && ++scan->at == scan->end)
            return false;
    if (scan->at == scan->end)
        return false;
    *out = (struct text){start, (size_t)(scan->at - start)};
    scan->at++;
    return true;
}

/* Over a value of any kind: to the comma or bracket that ends it. */
static bool skip_value(struct scan *scan)
{
    struct text ignored;
    size_t depth = 0;
    skip_space(scan);
    while (scan->at < scan->end) {
        switch (*scan->at) {
        case '"':
            if (!scan_string(scan, &ignored))
                return false;
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return true;
            depth--;
            break;
        case ',':
            if (depth == 0)
                return true;
            break;
        default:
            break;
        }
        scan->at++;
    }
    return false;
}

/* To the value of the key, inside the object at the scan. */
static bool find_key(struct scan *scan, const char *key)
{
    if (!skip_byte(scan, '{'))
        return false;
    do {
        struct text name;
        if (!scan_string(scan, &name) || !skip_byte(scan, ':'))
            return false;
        if (text_equal(name, text_of(key)))
            return true;
        if (!skip_value(scan))
            return false;
    } while (skip_byte(scan, ','));
    return false;
}

struct text json_find_text(struct text json, const char *const *path, size_t path_size)
{
    struct scan scan = {json.data, json.data + json.size};
    struct text value = {0};
    for (size_t i = 0; i < path_size; i++)
        if (!find_key(&scan, path[i]))
            return TEXT("");
    if (!scan_string(&scan, &value) || memchr(value.data, '\\', value.size))
        return TEXT("");
    return value;
}

/* ---- Keys given twice -------------------------------------------------------------------------
 */

enum { KEYS_SEEN_MAX = 64 };

/* The keys of the objects the scan is in, outermost first. */
struct seen {
    struct {
        struct text key;
        size_t depth;
    } keys[KEYS_SEEN_MAX];
    size_t count;
};

static bool is_seen(const struct seen *seen, struct text key, size_t depth)
{
    for (size_t i = seen->count; i > 0 && seen->keys[i - 1].depth == depth; i--)
        if (text_equal(seen->keys[i - 1].key, key))
            return true;
    return false;
}

static void leave(struct seen *seen, size_t depth)
{
    while (seen->count > 0 && seen->keys[seen->count - 1].depth == depth)
        seen->count--;
}

size_t json_count_keys(struct text json, struct text *out_repeated)
{
    struct scan scan = {json.data, json.data + json.size};
    struct seen seen = {.count = 0};
    struct text text;
    size_t key_count = 0, depth = 0;
    *out_repeated = TEXT("");
    while (scan.at < scan.end) {
        if (*scan.at == '"') {
            if (!scan_string(&scan, &text))
                break;
            if (!skip_byte(&scan, ':'))
                continue;
            key_count++;
            if (out_repeated->size == 0 && is_seen(&seen, text, depth))
                *out_repeated = text;
            else if (seen.count < KEYS_SEEN_MAX)
                seen.keys[seen.count++] = (typeof(*seen.keys)){text, depth};
            continue;
        }
        if (*scan.at == '{')
            depth++;
        else if (*scan.at == '}' && depth > 0)
            leave(&seen, depth--);
        scan.at++;
    }
    return key_count;
}
