#include "market/waiting.h"

#include "base/assert.h"
#include "market/listing_internal.h"

/* Wishes have their bits up to here; above, one of these is in each entry. */
#define WISHED_BITS (LISTING_BIT_ANYONE - 1)
#define BIT_STUCK   (UINT64_C(1) << 62)
#define BIT_HOPEFUL (UINT64_C(1) << 63)
#define LABEL_BITS  ((UINT64_C(1) << (LABELS_BITS + 2)) - 1)

void waiting_init(struct waiting_list *waiting)
{
    *waiting = (struct waiting_list){.book = book_new()};
}

void waiting_done(struct waiting_list *waiting)
{
    book_free(waiting->book);
}

static struct book_entry entry_of(const struct listing *listing, struct job *job,
                                  enum machine_role role)
{
    struct book_wish wish = listing_standing_wish(listing, NULL, &job->request, role);
    const bool is_server = role == MACHINE_ROLE_SERVER;
    const struct resources wanted = is_server ? job->request.server : job->request.worker;
    listing_want_room(NULL, &wish.least, LISTING_CORES, wanted);
    /* A word no offer bore so far may come with the next. */
    if (wish.least.bits & LABELS_NEVER)
        wish.least.bits &= ~LABEL_BITS;
    struct book_entry entry = {.point = book_point_negate(wish.least),
                               .score = queue_score(job_rushes(job), job->turn.tag),
                               .id = job->id * 2 + is_server,
                               .order = listing_order(&(struct listing_likeness){
                                   .free = wanted, .all = wanted, .bits = wish.least.bits}),
                               .item = job};
    entry.point.bits &= WISHED_BITS;
    entry.point.bits |= job->is_stuck ? BIT_STUCK : BIT_HOPEFUL;
    return entry;
}

static bool has_server(const struct job *job)
{
    return job->request.server.cores_milli > 0;
}

void waiting_add(struct waiting_list *waiting, const struct listing *listing, struct job *job)
{
    if (job->waiting_numbers[0])
        return;
    struct book_entry entry = entry_of(listing, job, MACHINE_ROLE_WORKER);
    job->waiting_numbers[0] = book_add(waiting->book, &entry);
    if (!has_server(job))
        return;
    entry = entry_of(listing, job, MACHINE_ROLE_SERVER);
    job->waiting_numbers[1] = book_add(waiting->book, &entry);
}

void waiting_remove(struct waiting_list *waiting, struct job *job)
{
    for (int i = 0; i < 2; i++) {
        if (job->waiting_numbers[i])
            book_remove(waiting->book, job->waiting_numbers[i]);
        job->waiting_numbers[i] = 0;
    }
    waiting->stuck_count -= job->is_stuck;
    job->is_stuck = false;
}

void waiting_set_stuck(struct waiting_list *waiting, const struct listing *listing, struct job *job,
                       bool is_stuck)
{
    ASSERT(job->waiting_numbers[0]);
    if (job->is_stuck == is_stuck)
        return;
    job->is_stuck = is_stuck;
    waiting->stuck_count += is_stuck ? 1 : (size_t)-1;
    struct book_entry entry = entry_of(listing, job, MACHINE_ROLE_WORKER);
    book_change(waiting->book, job->waiting_numbers[0], &entry);
    if (!has_server(job))
        return;
    entry = entry_of(listing, job, MACHINE_ROLE_SERVER);
    book_change(waiting->book, job->waiting_numbers[1], &entry);
}

static struct book_wish wish_for(struct book_point point, uint64_t bit)
{
    struct book_wish wish = {.least = book_point_negate(point)};
    /* Jobs say nothing of these, but their entries carry the negated lack of a wish. */
    wish.least.bits = (wish.least.bits & WISHED_BITS) | bit;
    return wish;
}

struct book_wish waiting_wish(struct listing *listing, const struct offer *offer, int64_t now_ms)
{
    return wish_for(listing_point(listing, offer, now_ms), BIT_HOPEFUL);
}

struct book_wish waiting_stuck_wish(struct listing *listing, const struct offer *offer,
                                    int64_t now_ms)
{
    struct book_point point = listing_point(listing, offer, now_ms);
    for (int i = 0; i < LISTING_ROOM_KEYS; i++)
        point.keys[LISTING_CORES + i] = point.keys[LISTING_ALL_CORES + i];
    return wish_for(point, BIT_STUCK);
}
