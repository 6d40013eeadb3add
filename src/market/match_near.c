/*
 * Match: workers that are within the longest RTT of each other.
 *
 * Who is near the market is near all others who are, through it: that is looked for first, and
 * costs no more than any other search. Only when they are too few, and some were tried with one
 * another, are sets looked for among the MATCH_NEAR_MAX nearest: rows of bits say who is near whom,
 * and from each machine on a set grows by whoever leaves the most to choose from. WORK_MAX bounds
 * it, however many are asked for.
 */
#include "market/match_internal.h"
#include "market/pair.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORD_BITS = 64,
    ROW_WORDS = MATCH_NEAR_MAX / WORD_BITS,
    WORK_MAX = 1 << 18, /* rows compared */
};

static const struct book_sort by_nearness = {
    .by = BOOK_BY_KEYS, .first_key = LISTING_NEARNESS, .second_key = LISTING_SPEED};

/* A set of candidates, by their index. */
struct row {
    uint64_t words[ROW_WORDS];
};

static void row_add(struct row *row, size_t index)
{
    row->words[index / WORD_BITS] |= UINT64_C(1) << (index % WORD_BITS);
}

static bool row_has(const struct row *row, size_t index)
{
    return row->words[index / WORD_BITS] >> (index % WORD_BITS) & 1;
}

static struct row row_common(const struct row *left, const struct row *right)
{
    struct row common;
    for (size_t i = 0; i < ROW_WORDS; i++)
        common.words[i] = left->words[i] & right->words[i];
    return common;
}

static size_t row_count(const struct row *row)
{
    size_t count = 0;
    for (size_t i = 0; i < ROW_WORDS; i++)
        count += (size_t)__builtin_popcountll(row->words[i]);
    return count;
}

/* ---- Who is near whom ------------------------------------------------------------------------ */

struct index {
    uint64_t machine;
    size_t at;
};

static int compare_indexes(const void *left, const void *right)
{
    const struct index *a = left, *b = right;
    return (a->machine > b->machine) - (a->machine < b->machine);
}

static void add_direct(const struct attempt *attempt, int64_t max_us, struct row *rows)
{
    const size_t count = attempt->worker_count;
    struct index *indexes = arena_alloc(attempt->matcher->arena, count * sizeof(*indexes));
    for (size_t i = 0; i < count; i++)
        indexes[i] = (struct index){attempt->workers[i].offer->machine->id, i};
    qsort(indexes, count, sizeof(*indexes), compare_indexes);
    for (size_t i = 0; i < count; i++) {
        const struct machine *machine = attempt->workers[i].offer->machine;
        for (size_t k = 0; machine->pairs && k < machine->pairs->count; k++) {
            const struct machine *peer = machine->pairs->peers[k].machine;
            const int64_t direct_us = pair_direct_us(machine, peer, attempt->wish->now_ms);
            const struct index wanted = {peer->id, 0};
            const struct index *found =
                direct_us > 0 && direct_us <= max_us
                    ? bsearch(&wanted, indexes, count, sizeof(*indexes), compare_indexes)
                    : NULL;
            if (found)
                row_add(&rows[i], found->at);
        }
    }
}

/* Through the market. They come with the nearest to it first. */
static void add_relayed(const struct attempt *attempt, int64_t max_us, struct row *rows)
{
    for (size_t i = 0; i < attempt->worker_count; i++) {
        const int64_t rtt_us = attempt->workers[i].offer->machine->probe.rtt_us;
        for (size_t k = 0; rtt_us > 0 && k < attempt->worker_count; k++) {
            const int64_t other_us = attempt->workers[k].offer->machine->probe.rtt_us;
            if (rtt_us + other_us > max_us)
                break;
            if (k != i && other_us > 0)
                row_add(&rows[i], k);
        }
    }
}

static bool is_near_others(const struct match_wish *wish, const struct machine *machine,
                           int64_t max_us)
{
    for (size_t i = 0; i < wish->other_count; i++) {
        const int64_t rtt_us = pair_rtt_us(machine, wish->others[i], wish->now_ms);
        if (rtt_us == 0 || rtt_us > max_us)
            return false;
    }
    return true;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

struct search {
    const struct row *rows;
    size_t candidate_count;
    size_t most;
    size_t work_left;
};

/* Of the set's neighbours the one who has most of them in common with it. */
static size_t best_of(struct search *search, const struct row *common)
{
    size_t best = 0, best_count = 0;
    bool has_any = false;
    for (size_t i = 0; i < search->candidate_count && search->work_left > 0; i++) {
        if (!row_has(common, i))
            continue;
        const struct row rest = row_common(common, &search->rows[i]);
        const size_t count = row_count(&rest);
        search->work_left--;
        if (!has_any || count > best_count) {
            has_any = true;
            best = i;
            best_count = count;
        }
    }
    return best;
}

static struct row grow_from(struct search *search, size_t seed)
{
    struct row set = {0};
    struct row common = search->rows[seed];
    row_add(&set, seed);
    for (size_t count = 1; count < search->most && search->work_left > 0 && row_count(&common) > 0;
         count++) {
        const size_t next = best_of(search, &common);
        if (!row_has(&common, next))
            break;
        row_add(&set, next);
        common = row_common(&common, &search->rows[next]);
    }
    return set;
}

static struct row find_set(struct search *search)
{
    struct row best = {0};
    size_t best_count = 0;
    for (size_t i = 0; i < search->candidate_count && best_count < search->most; i++) {
        if (search->work_left == 0)
            break;
        const struct row set = grow_from(search, i);
        if (row_count(&set) > best_count) {
            best_count = row_count(&set);
            best = set;
        }
    }
    return best;
}

/* Brings those of the set to the front and leaves the others. */
static void keep_set(struct attempt *attempt, const struct row *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < attempt->worker_count; i++) {
        if (!row_has(set, i))
            continue;
        const struct candidate moved = attempt->workers[kept];
        attempt->workers[kept++] = attempt->workers[i];
        attempt->workers[i] = moved;
    }
    match_keep_workers(attempt, kept);
}

static bool has_pairs(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->worker_count; i++)
        if (attempt->workers[i].offer->machine->pairs)
            return true;
    return false;
}

static bool find_by_pairs(struct attempt *attempt, struct book_wish *found, int64_t max_us)
{
    const struct match_wish *wish = attempt->wish;
    attempt->pool_max = MATCH_NEAR_MAX;
    attempt->max_rtt_us = 0;
    match_start_attempt(attempt);
    listing_want_near(attempt->matcher->listing, found, max_us);
    match_collect_workers(attempt, found, by_nearness, MATCH_NEAR_MAX, false);
    attempt->pool_max = 0;
    if (!has_pairs(attempt)) {
        match_keep_workers(attempt, 0);
        return false;
    }
    struct row fit = {0};
    for (size_t i = 0; i < attempt->worker_count; i++)
        if (is_near_others(wish, attempt->workers[i].offer->machine, max_us))
            row_add(&fit, i);
    keep_set(attempt, &fit);
    struct row *rows =
        arena_alloc(attempt->matcher->arena, (attempt->worker_count + 1) * sizeof(*rows));
    add_relayed(attempt, max_us, rows);
    add_direct(attempt, max_us, rows);
    struct search search = {rows, attempt->worker_count, attempt->worker_max, WORK_MAX};
    const struct row set = find_set(&search);
    keep_set(attempt, &set);
    return attempt->worker_count >= (size_t)wish->request->num_nodes;
}

/* ---- Near the market ------------------------------------------------------------------------- */

/* Of the workers, nearest first, as many as are within the longest RTT of each other. */
static void keep_relayed(struct attempt *attempt, int64_t max_us)
{
    size_t count = 1;
    for (; count < attempt->worker_count; count++)
        if (attempt->workers[count - 1].offer->machine->probe.rtt_us +
                attempt->workers[count].offer->machine->probe.rtt_us >
            max_us)
            break;
    match_keep_workers(attempt, count);
}

/* How near the market another worker must be; not more than 0: none can be near enough. */
static int64_t reach_us(const struct match_wish *wish, int64_t max_us)
{
    int64_t farthest_us = 0;
    for (size_t i = 0; i < wish->other_count; i++) {
        const int64_t rtt_us = wish->others[i]->probe.rtt_us;
        if (rtt_us == 0)
            return 0;
        farthest_us = rtt_us > farthest_us ? rtt_us : farthest_us;
    }
    return max_us - farthest_us;
}

/* A machine that knows no round trip to the market is not near it. */
static bool find_relayed(struct attempt *attempt, struct book_wish *found, int64_t max_us)
{
    const size_t least = (size_t)attempt->wish->request->num_nodes;
    const struct listing *listing = attempt->matcher->listing;
    const int64_t within_us = reach_us(attempt->wish, max_us);
    if (within_us < 2)
        return false;
    attempt->max_rtt_us = within_us / 2;
    listing_want_near(listing, found, attempt->max_rtt_us);
    match_collect_workers(attempt, found, attempt->sort, attempt->worker_max, false);
    if (attempt->worker_count >= least)
        return true;
    match_start_attempt(attempt);
    attempt->max_rtt_us = within_us;
    listing_want_near(listing, found, within_us);
    match_collect_workers(attempt, found, by_nearness, attempt->worker_max, false);
    keep_relayed(attempt, max_us);
    return attempt->worker_count >= least;
}

bool match_find_near(struct attempt *attempt, struct book_wish *found, int64_t max_us)
{
    return find_relayed(attempt, found, max_us) || find_by_pairs(attempt, found, max_us);
}

size_t match_near_candidates(struct matcher *matcher, const struct match_wish *wish,
                             const struct machine *out_machines[MATCH_NEAR_MAX])
{
    struct job_request request = *wish->request;
    struct match_wish anywhere = *wish;
    request.wishes.max_rtt_us = 0;
    anywhere.request = &request;
    arena_clear(matcher->arena);
    struct attempt attempt = {.matcher = matcher, .wish = &anywhere, .pool_max = MATCH_NEAR_MAX};
    const struct book_wish found = listing_wish(matcher->listing, &anywhere, MACHINE_ROLE_WORKER,
                                                LISTING_FREE, /* with_dearer= */ false);
    match_start_attempt(&attempt);
    match_collect_workers(&attempt, &found, by_nearness, MATCH_NEAR_MAX, false);
    for (size_t i = 0; i < attempt.worker_count; i++)
        out_machines[i] = attempt.workers[i].offer->machine;
    return attempt.worker_count;
}
