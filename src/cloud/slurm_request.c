#include "cloud/slurm_request.h"

#include "base/text.h"

#include <string.h>

/* "7", "0-9", "0-9:2". Not read: 1. */
static uint32_t count_range(struct text range)
{
    struct text ends, step = {0}, first, last;
    uint64_t from = 0, to = 0, by = 1;
    struct error ignored;
    if (!text_cut(range, ':', &ends, &step))
        ends = range;
    if (!text_cut(ends, '-', &first, &last))
        return 1;
    if (text_parse_u64(first, &from, &ignored) < 0 || text_parse_u64(last, &to, &ignored) < 0 ||
        (step.size > 0 && text_parse_u64(step, &by, &ignored) < 0))
        return 1;
    if (to < from || by == 0 || to - from >= UINT32_MAX)
        return 1;
    return (uint32_t)((to - from) / by) + 1;
}

uint32_t slurm_array_count(const char *tasks, uint32_t most)
{
    if (!tasks || !tasks[0] || most == 0)
        return 1;
    struct text ranges = text_of(tasks), limit = {0}, range;
    uint64_t together = most, count = 0;
    struct error ignored;
    if (text_cut(text_of(tasks), '%', &ranges, &limit) &&
        text_parse_u64(limit, &together, &ignored) < 0)
        together = most;
    for (bool has_more = ranges.size > 0; has_more;) {
        has_more = text_cut(ranges, ',', &range, &ranges);
        count += count_range(range);
    }
    if (count > together)
        count = together;
    return count < 1 ? 1 : count > most ? most : (uint32_t)count;
}

static bool has_word(struct text words, struct text wanted)
{
    struct text word;
    for (bool has_more = words.size > 0; has_more;) {
        has_more = text_cut(words, ',', &word, &words);
        if (text_equal(text_trim(word), wanted))
            return true;
    }
    return false;
}

bool slurm_features_could(const char *features, const char *wanted)
{
    if (!wanted || !wanted[0] || strpbrk(wanted, "|*()[]"))
        return true;
    struct text rest = text_of(wanted), word;
    for (bool has_more = true; has_more;) {
        const bool is_and = strchr(wanted, '&') != NULL;
        has_more = text_cut(rest, is_and ? '&' : ',', &word, &rest);
        if (!has_word(text_of(features ? features : ""), text_trim(word)))
            return false;
    }
    return true;
}
