/*
 * Commit rate search: the two ways of comparing candidate rates.
 */
#include "sync/search.h"

#include "base/assert.h"

enum { PAIRING_PERIODS = 4, PAIRINGS_MAX = 4 };
static const double win_margin = 0.05;

static void finish(struct rate_search *search, uint32_t rate)
{
    search->is_active = false;
    search->candidate = rate;
}

/* Picks the next challenger in the current direction; false when there is none. */
static bool pairing_begin(struct rate_search *search)
{
    const uint32_t next = search->is_going_down ? search->base / 2 : search->base * 2;
    if (next < 1 || next > search->rate_max || search->pairing_count >= PAIRINGS_MAX)
        return false;
    search->pairing_count++;
    search->challenger = next;
    search->fed_count = 0;
    search->candidate = search->base;
    return true;
}

void rate_search_begin(struct rate_search *search, enum sync_search mode, uint32_t rate,
                       uint32_t rate_max)
{
    ASSERT(rate >= 1 && rate_max >= rate);
    *search = (struct rate_search){.mode = mode, .is_active = true, .rate_max = rate_max};
    search->base = rate;
    switch (mode) {
    case SYNC_SEARCH_PAPER:
        search->candidate = 1;
        return;
    case SYNC_SEARCH_AUTO:
        if (pairing_begin(search))
            return;
        search->is_going_down = true;
        if (!pairing_begin(search))
            finish(search, rate);
        return;
    case SYNC_SEARCH_OFF:
    case SYNC_SEARCH_COUNT:
        finish(search, rate);
        return;
    }
}

static void paper_feed(struct rate_search *search, const struct sync_reward *reward)
{
    if (search->has_previous && !sync_reward_is_better(reward, &search->previous, 0)) {
        finish(search, search->candidate - 1);
        return;
    }
    if (search->candidate == search->rate_max) {
        finish(search, search->candidate);
        return;
    }
    search->has_previous = true;
    search->previous = *reward;
    search->candidate++;
}

/* The mean of two periods; the fit counts only where both have one. */
static struct sync_reward reward_mean(const struct sync_reward *a, const struct sync_reward *b)
{
    return (struct sync_reward){
        .has_fit = a->has_fit && b->has_fit,
        .fit = (a->fit + b->fit) / 2,
        .slope = (a->slope + b->slope) / 2,
    };
}

static void pairing_end(struct rate_search *search)
{
    const struct sync_reward base = reward_mean(&search->rewards[0], &search->rewards[3]);
    const struct sync_reward challenger = reward_mean(&search->rewards[1], &search->rewards[2]);
    if (sync_reward_is_better(&challenger, &base, win_margin)) {
        search->base = search->challenger;
        search->has_won = true;
        if (!pairing_begin(search))
            finish(search, search->base);
        return;
    }
    if (search->has_won || search->is_going_down) {
        finish(search, search->base);
        return;
    }
    search->is_going_down = true;
    if (!pairing_begin(search))
        finish(search, search->base);
}

static void auto_feed(struct rate_search *search, const struct sync_reward *reward)
{
    search->rewards[search->fed_count++] = *reward;
    if (search->fed_count == PAIRING_PERIODS) {
        pairing_end(search);
        return;
    }
    const bool is_challenger = search->fed_count == 1 || search->fed_count == 2;
    search->candidate = is_challenger ? search->challenger : search->base;
}

void rate_search_feed(struct rate_search *search, const struct sync_reward *reward)
{
    ASSERT(search->is_active);
    if (search->mode == SYNC_SEARCH_PAPER)
        paper_feed(search, reward);
    else
        auto_feed(search, reward);
    ASSERT(search->candidate >= 1 && search->candidate <= search->rate_max);
}

void rate_search_abandon(struct rate_search *search)
{
    if (!search->is_active)
        return;
    const bool is_first = search->mode != SYNC_SEARCH_PAPER || !search->has_previous;
    finish(search, search->mode == SYNC_SEARCH_PAPER
                       ? (is_first ? search->candidate : search->candidate - 1)
                       : search->base);
}
