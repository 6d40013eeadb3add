#include "runtime/muster.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const muster_restart_names[] = {"job", "rank", "never", NULL};

enum phase { PHASE_GATHERING, PHASE_RUNNING, PHASE_STOPPING, PHASE_OVER };

struct member {
    struct muster_rank who;
    int64_t heard_ms;
    bool is_in_round;
    bool is_running;
    bool has_succeeded; /* in this round */
};

struct muster {
    struct muster_options options;
    void (*on_order)(void *context, const struct muster_order *order);
    void *context;
    enum phase phase;
    struct member *members; /* [most], those that are there, by rank */
    size_t count;
    struct muster_rank *round; /* [most] */
    size_t round_count;
    uint64_t index;      /* of the round */
    uint64_t next_index; /* of the one after it */
    uint64_t failures;
    bool has_failed;      /* one was told to end as it did: the market ends the others */
    bool has_regroup;     /* the round is over at regroup_ms, as somebody came */
    bool has_said_absent; /* who is missing */
    int64_t regroup_ms, joined_ms, gathering_ms;
};

static void order_one(struct muster *muster, enum muster_order_kind kind, uint64_t rank, bool is_ok,
                      const char *text)
{
    struct muster_order order = {.kind = kind, .rank = rank, .is_ok = is_ok};
    snprintf(order.text, sizeof(order.text), "%s", text);
    muster->on_order(muster->context, &order);
}

static void say(struct muster *muster, const char *text)
{
    order_one(muster, MUSTER_SAY, 0, false, text);
}

static void tell_done(struct muster *muster)
{
    if (muster->options.restart == MUSTER_RESTART_RANK)
        order_one(muster, MUSTER_DONE, 0, false, "");
}

static void write_who(const struct muster_rank *who, char out[MUSTER_NAME_SIZE + 32])
{
    snprintf(out, MUSTER_NAME_SIZE + 32, "rank %" PRIu64 "%s%s", who->rank,
             who->name[0] ? " on " : "", who->name);
}

struct muster *muster_new(const struct muster_options *options,
                          void (*on_order)(void *context, const struct muster_order *order),
                          void *context)
{
    ASSERT(options->least >= 1 && options->most >= options->least);
    struct muster *muster = calloc(1, sizeof(*muster));
    ASSERT(muster);
    muster->options = *options;
    muster->on_order = on_order;
    muster->context = context;
    muster->members = calloc(options->most, sizeof(*muster->members));
    muster->round = calloc(options->most, sizeof(*muster->round));
    ASSERT(muster->members && muster->round);
    return muster;
}

void muster_free(struct muster *muster)
{
    if (!muster)
        return;
    free(muster->members);
    free(muster->round);
    free(muster);
}

static struct member *find(struct muster *muster, uint64_t rank)
{
    for (size_t i = 0; i < muster->count; i++)
        if (muster->members[i].who.rank == rank)
            return &muster->members[i];
    return NULL;
}

bool muster_has(const struct muster *muster, uint64_t rank)
{
    for (size_t i = 0; i < muster->count; i++)
        if (muster->members[i].who.rank == rank)
            return true;
    return false;
}

size_t muster_list_done(const struct muster *muster, struct muster_rank *out)
{
    size_t count = 0;
    for (size_t i = 0; i < muster->count; i++)
        if (muster->members[i].has_succeeded && muster->options.restart == MUSTER_RESTART_RANK)
            out[count++] = muster->members[i].who;
    return count;
}

bool muster_is_round(const struct muster_options *options, uint64_t own,
                     const struct muster_rank *members, size_t count)
{
    bool has_own = false;
    if (count < options->least || count > options->most)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (members[i].rank >= options->most || (i > 0 && members[i].rank <= members[i - 1].rank))
            return false;
        has_own |= members[i].rank == own;
    }
    return has_own;
}

static const struct muster_rank *find_in_round(const struct muster *muster, uint64_t rank)
{
    for (size_t i = 0; i < muster->round_count; i++)
        if (muster->round[i].rank == rank)
            return &muster->round[i];
    return NULL;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void start_member(struct muster *muster, struct member *member)
{
    member->is_in_round = true;
    member->has_succeeded = false;
    if (member->is_running)
        return; /* it goes on */
    member->is_running = true;
    order_one(muster, MUSTER_START, member->who.rank, false, "");
}

static void start_round(struct muster *muster)
{
    const bool is_single = muster->options.restart != MUSTER_RESTART_JOB;
    muster->phase = PHASE_RUNNING;
    muster->has_regroup = muster->has_said_absent = false;
    muster->index = is_single ? 0 : muster->next_index;
    muster->next_index = muster->index + 1;
    muster->round_count = muster->count;
    for (size_t i = 0; i < muster->count; i++)
        muster->round[i] = muster->members[i].who;
    for (size_t i = 0; i < muster->count; i++)
        start_member(muster, &muster->members[i]);
}

static void stop_round(struct muster *muster)
{
    muster->phase = PHASE_STOPPING;
    for (size_t i = 0; i < muster->count; i++)
        if (muster->members[i].is_running)
            order_one(muster, MUSTER_STOP, muster->members[i].who.rank, false, "");
}

static bool has_running(const struct muster *muster)
{
    for (size_t i = 0; i < muster->count; i++)
        if (muster->members[i].is_running)
            return true;
    return false;
}

/* Who is missing for long is named, once in each gathering. */
static void say_absent(struct muster *muster, int64_t now_ms)
{
    if (muster->has_said_absent || muster->count >= muster->options.least ||
        now_ms - muster->gathering_ms < MUSTER_SILENCE_MS)
        return;
    muster->has_said_absent = true;
    for (uint64_t rank = 0; rank < muster->options.least; rank++) {
        char who[MUSTER_NAME_SIZE + 32], text[MUSTER_TEXT_SIZE];
        if (find(muster, rank))
            continue;
        const struct muster_rank unknown = {.rank = rank}, *known = find_in_round(muster, rank);
        write_who(known ? known : &unknown, who);
        snprintf(text, sizeof(text), "%s: not heard for %d s; the job waits for it", who,
                 MUSTER_SILENCE_MS / 1000);
        say(muster, text);
    }
}

static void turn(struct muster *muster, int64_t now_ms)
{
    if (muster->phase == PHASE_RUNNING && !muster->has_failed && muster->has_regroup &&
        now_ms >= muster->regroup_ms)
        stop_round(muster);
    if (muster->phase == PHASE_STOPPING && !has_running(muster)) {
        muster->phase = PHASE_GATHERING;
        muster->gathering_ms = now_ms;
        muster->has_regroup = false;
    }
    if (muster->phase != PHASE_GATHERING)
        return;
    if (muster->count == muster->options.most ||
        (muster->count >= muster->options.least && now_ms - muster->joined_ms >= MUSTER_QUIET_MS))
        start_round(muster);
    else
        say_absent(muster, now_ms);
}

/* ---- Ranks come and go ----------------------------------------------------------------------- */

static struct member *insert(struct muster *muster, const struct muster_rank *rank)
{
    size_t at = muster->count;
    ASSERT(muster->count < muster->options.most);
    for (; at > 0 && muster->members[at - 1].who.rank > rank->rank; at--)
        muster->members[at] = muster->members[at - 1];
    muster->members[at] = (struct member){.who = *rank};
    muster->count++;
    return &muster->members[at];
}

static void join_running(struct muster *muster, struct member *member, int64_t now_ms)
{
    char who[MUSTER_NAME_SIZE + 32], text[MUSTER_TEXT_SIZE];
    write_who(&member->who, who);
    if (muster->options.restart != MUSTER_RESTART_JOB) {
        if (find_in_round(muster, member->who.rank))
            start_member(muster, member);
        return;
    }
    snprintf(text, sizeof(text), "%s has come: all start anew, %zu ranks", who, muster->count);
    say(muster, text);
    muster->has_regroup = true;
    muster->regroup_ms = now_ms + MUSTER_QUIET_MS;
}

void muster_join(struct muster *muster, const struct muster_rank *rank, int64_t now_ms)
{
    if (find(muster, rank->rank))
        muster_leave(muster, rank->rank, "another has taken its place", now_ms);
    if (muster->count == muster->options.most)
        return; /* the market starts no more than that */
    if (muster->count == 0)
        muster->gathering_ms = now_ms;
    struct member *member = insert(muster, rank);
    member->heard_ms = muster->joined_ms = now_ms;
    member->is_running = rank->is_running && muster->options.restart == MUSTER_RESTART_RANK;
    if (rank->rounds > muster->next_index)
        muster->next_index = rank->rounds;
    if (muster->phase == PHASE_RUNNING)
        join_running(muster, member, now_ms);
    else if (muster->phase == PHASE_OVER && !muster->has_failed)
        order_one(muster, MUSTER_END, rank->rank, true, "");
    turn(muster, now_ms);
}

void muster_heard(struct muster *muster, uint64_t rank, int64_t now_ms)
{
    struct member *member = find(muster, rank);
    if (member)
        member->heard_ms = now_ms;
}

void muster_leave(struct muster *muster, uint64_t rank, const char *why, int64_t now_ms)
{
    struct member *member = find(muster, rank);
    char who[MUSTER_NAME_SIZE + 32], text[MUSTER_TEXT_SIZE];
    if (!member)
        return;
    const bool was_in_round = member->is_in_round, was_done = member->has_succeeded;
    write_who(&member->who, who);
    muster->count--;
    for (size_t i = (size_t)(member - muster->members); i < muster->count; i++)
        muster->members[i] = muster->members[i + 1];
    if (muster->phase == PHASE_OVER || muster->has_failed)
        return;
    snprintf(text, sizeof(text), "%s: %s", who, why);
    say(muster, text);
    if (was_done)
        tell_done(muster); /* its successor does it again */
    if (muster->phase == PHASE_RUNNING && was_in_round) {
        if (muster->options.restart == MUSTER_RESTART_JOB)
            stop_round(muster);
        else if (muster->options.restart == MUSTER_RESTART_NEVER) {
            muster->has_failed = true;
            order_one(muster, MUSTER_END, 0, false, text);
            return;
        }
    }
    turn(muster, now_ms);
}

void muster_tick(struct muster *muster, int64_t now_ms)
{
    for (size_t i = muster->count; i-- > 0;) {
        const struct member *member = &muster->members[i];
        char why[64];
        if (member->who.rank == 0 || now_ms - member->heard_ms < MUSTER_SILENCE_MS)
            continue;
        snprintf(why, sizeof(why), "not heard for %d s", MUSTER_SILENCE_MS / 1000);
        muster_leave(muster, member->who.rank, why, now_ms);
    }
    turn(muster, now_ms);
}

/* ---- Scripts end ----------------------------------------------------------------------------- */

static bool is_done(const struct muster *muster)
{
    const size_t awaited = muster->options.is_led ? 1 : muster->round_count;
    for (size_t i = 0; i < awaited; i++) {
        const struct member *member = NULL;
        for (size_t k = 0; k < muster->count && !member; k++)
            if (muster->members[k].who.rank == muster->round[i].rank)
                member = &muster->members[k];
        if (!member || !member->has_succeeded)
            return false;
    }
    return true;
}

static void end_all(struct muster *muster)
{
    muster->phase = PHASE_OVER;
    for (size_t i = 0; i < muster->count; i++)
        order_one(muster, MUSTER_END, muster->members[i].who.rank, true, "");
}

static void take_failure(struct muster *muster, const struct member *member, int status)
{
    char who[MUSTER_NAME_SIZE + 32], text[MUSTER_TEXT_SIZE];
    if (muster->has_failed)
        return; /* one exit status: that of the first */
    if (muster->options.restart != MUSTER_RESTART_JOB ||
        muster->failures >= muster->options.max_restarts) {
        muster->has_failed = true;
        order_one(muster, MUSTER_END, member->who.rank, false, "");
        return;
    }
    muster->failures++;
    write_who(&member->who, who);
    snprintf(text, sizeof(text), "%s: exit status %d; all start anew, %" PRIu64 " of %" PRIu64, who,
             status, muster->failures, muster->options.max_restarts);
    say(muster, text);
    stop_round(muster);
}

void muster_exit(struct muster *muster, uint64_t rank, uint64_t round, int status, int64_t now_ms)
{
    struct member *member = find(muster, rank);
    if (!member || !member->is_in_round || round != muster->index)
        return;
    member->is_running = false;
    if (muster->phase == PHASE_RUNNING) {
        member->has_succeeded = status == 0;
        if (status != 0)
            take_failure(muster, member, status);
        else if (is_done(muster) && !muster->has_failed)
            end_all(muster);
        else
            tell_done(muster);
    }
    turn(muster, now_ms);
}

const struct muster_rank *muster_round(const struct muster *muster, size_t *out_count,
                                       uint64_t *out_index)
{
    *out_count = muster->round_count;
    *out_index = muster->index;
    return muster->round;
}
