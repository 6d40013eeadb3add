#include "exchange/chooser.h"

#include "base/assert.h"

#include <stdlib.h>

#define SHARE_HIDDEN  (1.0 / 3)
#define LOOKS_LONG_NS INT64_C(2000000000) /* no processor is busy for so long */

/* By loss. The worth is of a push beside one that loses nothing; the coding is measured: what is
 * lost is found and added to the next, at both ends. */
static const struct candidate {
    enum codec codec;
    double worth;
    double coding_s; /* of a float, one way */
} candidates[] = {
    {CODEC_F32, 1, 0},         {CODEC_F16, 0.85, 2e-9},   {CODEC_INT8, 0.75, 2e-9},
    {CODEC_1BIT, 0.4, 2.5e-9}, {CODEC_TOPK, 0.3, 2.5e-9},
};
enum { CANDIDATE_COUNT = sizeof(candidates) / sizeof(*candidates) };

static double link_s(const struct chooser_link *link, enum codec codec)
{
    return 2 * (double)link->count * codec_bytes_per_float(codec, link->density) /
           link->bytes_per_second;
}

static double there_and_back_s(const struct chooser_link *link, const struct candidate *candidate)
{
    return link_s(link, candidate->codec) + 2 * (double)link->count * candidate->coding_s;
}

static enum codec best_hidden(const struct chooser_link *link)
{
    const double by_interval = link->interval_s * SHARE_HIDDEN;
    const double by_steps = CHOOSER_STEPS_HIDDEN * link->step_s;
    const double span_s = by_interval > by_steps ? by_interval : by_steps;
    enum codec least = CODEC_F32;
    for (size_t i = 0; i < CANDIDATE_COUNT; i++) {
        if (link_s(link, candidates[i].codec) <= span_s)
            return candidates[i].codec;
        if (link_s(link, candidates[i].codec) < link_s(link, least))
            least = candidates[i].codec;
    }
    return least;
}

/* What is left of the interval without the vectors' way. */
static double rest_s(const struct chooser_link *link)
{
    double rest = link->step_s;
    for (size_t i = 0; i < CANDIDATE_COUNT; i++)
        if (candidates[i].codec == link->codec &&
            link->interval_s - there_and_back_s(link, &candidates[i]) > rest)
            rest = link->interval_s - there_and_back_s(link, &candidates[i]);
    return rest;
}

static enum codec best_waited(const struct chooser_link *link)
{
    const double rest = rest_s(link);
    enum codec best = CODEC_F32;
    double most = 0;
    for (size_t i = 0; i < CANDIDATE_COUNT; i++) {
        const double progress =
            candidates[i].worth / (rest + there_and_back_s(link, &candidates[i]));
        if (progress > most) {
            most = progress;
            best = candidates[i].codec;
        }
    }
    return best;
}

enum codec chooser_best(const struct chooser_link *link)
{
    if (link->bytes_per_second <= 0 || (link->interval_s <= 0 && link->step_s <= 0))
        return link->codec;
    return link->is_hidden ? best_hidden(link) : best_waited(link);
}

void chooser_init(struct chooser *chooser, size_t count, double density, enum codec first)
{
    ASSERT(count > 0);
    *chooser =
        (struct chooser){.count = count, .density = density, .codec = first, .wanted = first};
}

static int larger_first(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a < b) - (a > b);
}

static uint32_t remembered(const struct chooser *chooser)
{
    return chooser->seen < CHOOSER_PUSHES ? chooser->seen : CHOOSER_PUSHES;
}

static double good_rate(const struct chooser *chooser)
{
    double sorted[CHOOSER_PUSHES];
    const uint32_t count = remembered(chooser);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = chooser->rates[i];
    qsort(sorted, count, sizeof(*sorted), larger_first);
    return sorted[count / 6];
}

static double mean_interval_s(const struct chooser *chooser)
{
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < remembered(chooser); i++) {
        sum += chooser->intervals_s[i];
        known += chooser->intervals_s[i] > 0;
    }
    return known > 0 ? sum / known : 0;
}

static void codec_set(struct chooser *chooser, enum codec codec)
{
    chooser->codec = chooser->wanted = codec;
    chooser->looks = chooser->unseen = 0;
    chooser->looks_ns = 0;
    for (size_t i = 0; i < CHOOSER_PUSHES; i++)
        chooser->intervals_s[i] = 0; /* they change with it; the link does not */
}

/* Under a codec whose pushes are too short to measure a link that has become fast is never seen. */
static enum codec take_short(struct chooser *chooser)
{
    if (chooser->codec == CODEC_F32 || ++chooser->unseen < CHOOSER_UNSEEN_MAX)
        return chooser->codec;
    codec_set(chooser, chooser->count >= CHOOSER_BYTES_MIN ? CODEC_INT8 : CODEC_F32);
    return chooser->codec;
}

enum codec chooser_take(struct chooser *chooser, const struct chooser_push *push)
{
    if (push->bytes < CHOOSER_BYTES_MIN || push->took_ns <= 0)
        return take_short(chooser);
    const uint32_t at = chooser->seen++ % CHOOSER_PUSHES;
    chooser->unseen = 0;
    chooser->rates[at] = (double)push->bytes / (1e-9 * (double)push->took_ns);
    chooser->intervals_s[at] = 1e-9 * (double)push->interval_ns;
    const struct chooser_link link = {
        .count = chooser->count,
        .bytes_per_second = good_rate(chooser),
        .interval_s = mean_interval_s(chooser),
        .step_s = 1e-9 * (double)push->step_ns,
        .density = chooser->density,
        .is_hidden = push->is_hidden,
        .codec = chooser->codec,
    };
    const enum codec best = chooser_best(&link);
    if (best != chooser->wanted) {
        chooser->wanted = best;
        chooser->looks = 0;
        chooser->looks_ns = 0;
    }
    chooser->looks++;
    chooser->looks_ns += push->took_ns;
    const bool is_shorter = codec_bytes_per_float(best, chooser->density) <
                            codec_bytes_per_float(chooser->codec, chooser->density);
    const bool is_long = is_shorter && chooser->looks_ns >= LOOKS_LONG_NS;
    if (best != chooser->codec && (chooser->looks >= CHOOSER_LOOKS || is_long))
        codec_set(chooser, best);
    return chooser->codec;
}
