#include "runtime/job_wish.h"

#include "base/assert.h"
#include "base/instant.h"
#include "base/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define START_WITHIN_MS_MIN INT64_C(1000)
#define START_WITHIN_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

const char *job_milli_format(int64_t milli, char out[JOB_WISH_TEXT_SIZE])
{
    int length =
        snprintf(out, JOB_WISH_TEXT_SIZE, "%" PRId64 ".%03" PRId64, milli / 1000, milli % 1000);
    while (out[length - 1] == '0')
        length--;
    if (out[length - 1] == '.')
        length--;
    out[length] = '\0';
    return out;
}

/* ---- Accelerators ---------------------------------------------------------------------------- */

static struct text next_part(struct text *rest, char separator)
{
    size_t size = 0;
    while (size < rest->size && rest->data[size] != separator)
        size++;
    const struct text part = text_trim((struct text){rest->data, size});
    size += size < rest->size;
    *rest = (struct text){rest->data + size, rest->size - size};
    return part;
}

/* "A100-80GB": letters, digits, '-', '_', '.' and a letter among them, so that a count is none. */
static bool is_model(struct text text)
{
    bool has_letter = false;
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x80 || (!isalnum(c) && c != '-' && c != '_' && c != '.'))
            return false;
        has_letter = has_letter || isalpha(c);
    }
    return has_letter && text.size < MACHINE_GPU_MODEL_SIZE;
}

static bool parse_part(struct text part, bool is_first, bool is_last, struct job_accelerators *out)
{
    struct error ignored;
    if (part.size > 1 && part.data[part.size - 1] == '+')
        return out->memory_bytes == 0 && out->count_milli == 0 &&
               units_parse_bytes((struct text){part.data, part.size - 1}, &out->memory_bytes,
                                 &ignored) == 0 &&
               out->memory_bytes > 0 && out->memory_bytes <= RESOURCES_BYTES_MAX;
    if (is_first && is_model(part)) {
        out->model = part;
        return true;
    }
    if (is_first && !is_last) /* a count is the last part */
        return false;
    return out->count_milli == 0 && units_parse_factor(part, &out->count_milli, &ignored) == 0 &&
           out->count_milli > 0 && out->count_milli <= RESOURCES_GPUS_MILLI_MAX;
}

int job_accelerators_parse(struct arena *arena, struct text text, struct job_accelerators *out,
                           struct error *error)
{
    struct job_accelerators accelerators = {0};
    struct text rest = text_trim(text);
    bool is_good = rest.size > 0;
    for (bool is_first = true; is_good && rest.size > 0; is_first = false) {
        is_good = rest.data[rest.size - 1] != ':';
        const struct text part = next_part(&rest, ':');
        is_good = is_good && parse_part(part, is_first, rest.size == 0, &accelerators);
    }
    if (!is_good)
        return error_set(error, ERROR_INVALID,
                         "must be a count, or a model, its memory and a count, like 1, T4:1, "
                         "T4:16GB+:2 or 24GB+:1");
    if (accelerators.count_milli == 0)
        accelerators.count_milli = 1000;
    accelerators.model = arena_copy_text(arena, accelerators.model);
    *out = accelerators;
    return 0;
}

const char *job_accelerators_format(const struct job_accelerators *accelerators,
                                    char out[JOB_WISH_TEXT_SIZE])
{
    char memory[32] = "", count[JOB_WISH_TEXT_SIZE];
    const int64_t bytes = accelerators->memory_bytes;
    const bool is_mib = bytes % (1 << 20) == 0;
    if (bytes > 0)
        snprintf(memory, sizeof(memory), "%s%" PRId64 "%s+", accelerators->model.size ? ":" : "",
                 is_mib ? bytes >> 20 : bytes, is_mib ? "MiB" : "B");
    const int length =
        snprintf(out, JOB_WISH_TEXT_SIZE, "%.*s%s%s%.20s", TEXT_ARGS(accelerators->model), memory,
                 accelerators->model.size || bytes > 0 ? ":" : "",
                 job_milli_format(accelerators->count_milli, count));
    ASSERT(length > 0 && length < JOB_WISH_TEXT_SIZE);
    return out;
}

/* ---- Start ----------------------------------------------------------------------------------- */

static bool take_word(struct text *rest, const char *word)
{
    const struct text wanted = text_of(word);
    if (rest->size <= wanted.size || !isspace((unsigned char)rest->data[wanted.size]) ||
        !text_equal((struct text){rest->data, wanted.size}, wanted))
        return false;
    *rest = text_trim((struct text){rest->data + wanted.size, rest->size - wanted.size});
    return true;
}

static int parse_deadline(struct text text, struct job_start_wish *start, struct error *error)
{
    struct error ignored;
    if (instant_parse(text, &start->at_ms, &ignored) == 0)
        return start->at_ms > 0 && start->at_ms < MARKET_TIME_MS_MAX
                   ? 0
                   : error_set(error, ERROR_INVALID, "is out of range");
    if (units_parse_duration(text, &start->within_ms, &ignored) < 0)
        return error_set(error, ERROR_INVALID,
                         "\"%.*s\" is neither an instant nor a span of time; write it like "
                         "2026-11-20T18:00Z or 6h",
                         (int)(text.size < 40 ? text.size : 40), text.data);
    if (start->within_ms < START_WITHIN_MS_MIN || start->within_ms > START_WITHIN_MS_MAX)
        return error_set(error, ERROR_INVALID, "must be from 1 s to 366 days away");
    return 0;
}

int job_start_parse(struct text text, struct job_start_wish *out, struct error *error)
{
    struct job_start_wish start = {.kind = JOB_START_NOW};
    struct text rest = text_trim(text);
    if (text_equal(rest, TEXT("now"))) {
        *out = start;
        return 0;
    }
    if (take_word(&rest, "by"))
        start.kind = JOB_START_DEADLINE;
    else if (take_word(&rest, "cheapest") && take_word(&rest, "before"))
        start.kind = JOB_START_CHEAPEST;
    else
        return error_set(error, ERROR_INVALID,
                         "must be now, by 2026-11-20T18:00Z, by 6h or cheapest before 24h");
    if (parse_deadline(rest, &start, error) < 0)
        return -1;
    *out = start;
    return 0;
}

/* Exact and as it is parsed, in the largest unit that divides it: "24h", "90m", "1500ms". */
static void format_span(int64_t ms, char out[INSTANT_TEXT_SIZE])
{
    static const struct {
        int64_t ms, least_ms;
        const char *name;
    } units[] = {{86400000, 172800000, "d"},
                 {3600000, 3600000, "h"},
                 {60000, 60000, "m"},
                 {1000, 1000, "s"},
                 {1, 0, "ms"}};
    size_t at = 0;
    while (ms % units[at].ms != 0 || ms < units[at].least_ms)
        at++;
    snprintf(out, INSTANT_TEXT_SIZE, "%" PRId64 "%s", ms / units[at].ms, units[at].name);
}

const char *job_start_format(const struct job_start_wish *start, char out[JOB_WISH_TEXT_SIZE])
{
    char deadline[INSTANT_TEXT_SIZE];
    if (start->at_ms > 0)
        instant_format(start->at_ms, deadline);
    else
        format_span(start->within_ms, deadline);
    if (start->kind == JOB_START_NOW)
        snprintf(out, JOB_WISH_TEXT_SIZE, "now");
    else
        snprintf(out, JOB_WISH_TEXT_SIZE, "%s %s",
                 start->kind == JOB_START_DEADLINE ? "by" : "cheapest before", deadline);
    return out;
}

int job_start_deadline(const struct job_start_wish *start, int64_t now_ms, int64_t *out_deadline_ms,
                       struct error *error)
{
    if (start->kind == JOB_START_NOW) {
        *out_deadline_ms = 0;
        return 0;
    }
    const int64_t deadline_ms = start->at_ms > 0 ? start->at_ms : now_ms + start->within_ms;
    char shown[INSTANT_TEXT_SIZE];
    if (deadline_ms <= now_ms)
        return error_set(error, ERROR_INVALID, "market.start: %s is in the past",
                         instant_format(deadline_ms, shown));
    *out_deadline_ms = deadline_ms;
    return 0;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

int job_nodes_parse(struct text text, struct job_nodes *out, struct error *error)
{
    struct job_nodes nodes = {0};
    struct error ignored;
    const struct text whole = text_trim(text);
    size_t dots = 0;
    while (dots + 1 < whole.size && !(whole.data[dots] == '.' && whole.data[dots + 1] == '.'))
        dots++;
    const bool has_dots = dots + 1 < whole.size;
    const struct text least = text_trim((struct text){whole.data, has_dots ? dots : whole.size});
    const struct text most =
        has_dots ? text_trim((struct text){whole.data + dots + 2, whole.size - dots - 2})
                 : (struct text){0};
    if (text_parse_u64(least, &nodes.least, &ignored) < 0 ||
        (has_dots && text_parse_u64(most, &nodes.most, &ignored) < 0))
        return error_set(error, ERROR_INVALID,
                         "must be a whole number like 3, or a range like 2..8, from 1 to %d",
                         JOB_NODES_MAX);
    if (has_dots && nodes.most < nodes.least)
        return error_set(error, ERROR_INVALID, "the least is above the most");
    *out = nodes;
    return 0;
}
