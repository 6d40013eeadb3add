#include "market/listing.h"

#include "base/assert.h"
#include "market/queue.h"

_Static_assert((int)LISTING_KEY_COUNT == (int)BOOK_KEY_COUNT,
               "each key of the book has a meaning here");

enum { MINUTE_MS = 60000, MIB_BITS = 20, TURN_BITS = 40, LEVEL_MAX = 249 };
enum { QUALITY_BITS = 8, QUALITY_MAX = (1 << QUALITY_BITS) - 1 };

/* Bits above those of labels. */
#define BIT_WORKER         (UINT64_C(1) << 44)
#define BIT_SERVER         (UINT64_C(1) << 45)
#define BIT_DEDICATED      (UINT64_C(1) << 46) /* to the role server */
#define BIT_NETWORK_JOB    (UINT64_C(1) << 47) /* at least */
#define BIT_NETWORK_OPEN   (UINT64_C(1) << 48)
#define BIT_INSTALL_WHEELS (UINT64_C(1) << 49)
#define BIT_INSTALL_INDEX  (UINT64_C(1) << 50)
#define BIT_ANYONE         (UINT64_C(1) << 51)
#define BIT_OF_ACCOUNT(id) (UINT64_C(1) << (52 + (id) % 6)) /* one of them may use it */
#define BIT_OF_GROUP(id)   (UINT64_C(1) << (58 + (id) % 6))
_Static_assert(LABELS_BITS + 2 == 44, "labels end where the other bits begin");

/* Eight levels to an octave: 0 for 0, 1 for 1, 9 for 2, 248 from 2^31 on. Never falls as the value
 * rises. */
static uint8_t level_of(int64_t value)
{
    if (value <= 0)
        return 0;
    if (value > INT32_MAX)
        return LEVEL_MAX;
    const int octave = 31 - __builtin_clz((uint32_t)value);
    const uint32_t eighth = ((uint32_t)value << (31 - octave)) >> 28 & 7;
    return (uint8_t)(1 + 8 * octave + (int)eighth);
}

/* The larger the value, the lower. */
static uint8_t level_below(int64_t value)
{
    return (uint8_t)(UINT8_MAX - level_of(value));
}

static uint8_t level_of_run(int64_t ms)
{
    return level_of(ms / MINUTE_MS);
}

/* Slots of six hours since the listing began; 255: for ever. */
static uint8_t level_of_instant(const struct listing *listing, int64_t instant_ms)
{
    if (instant_ms == INT64_MAX)
        return UINT8_MAX;
    const int64_t slots = (instant_ms - listing->began_ms) / SLOT_MS + 1;
    return (uint8_t)(slots < 1 ? 1 : slots > UINT8_MAX - 1 ? UINT8_MAX - 1 : slots);
}

/* ---- Offers ---------------------------------------------------------------------------------- */

/* Half octaves of `value` above `base`, 0 when it is below. */
static int64_t half_octaves(int64_t value, int64_t base)
{
    int64_t count = 0;
    for (; value >= 2 * base; value /= 2)
        count += 2;
    return value * 1000 >= base * 1414 ? count + 1 : count;
}

static int64_t nearness(int64_t rtt_us)
{
    if (rtt_us <= 0)
        return 0;
    const int64_t far = half_octaves(rtt_us, 1000) / 2;
    return far > 10 ? 0 : 10 - far;
}

bool listing_is_dear(const struct listing *listing, const struct offer *offer)
{
    const struct price_vector *minimum = &offer->terms.minimum, *price = &listing->price;
    return minimum->core_micro > price->core_micro || minimum->ram_micro > price->ram_micro ||
           minimum->gpu_micro > price->gpu_micro || minimum->disk_micro > price->disk_micro;
}

int64_t listing_quality(const struct listing *listing, const struct offer *offer)
{
    const struct machine *machine = offer->machine;
    if (listing_is_dear(listing, offer))
        return 0;
    return 4 * (machine_reliability_milli(machine) / 50) +
           2 * half_octaves(machine->probe.speed_weight_milli, PRICE_SPEED_MILLI_MIN) +
           nearness(machine->probe.rtt_us);
}

/* Leases and offers have ids from one counter, so no two offers of a quality are equal: the book
 * would have to look at all that are. */
static int64_t score_of(const struct listing *listing, const struct offer *offer)
{
    const uint64_t turn_max = (UINT64_C(1) << TURN_BITS) - 1;
    const uint64_t since = offer->last_lease > offer->id ? offer->last_lease : offer->id;
    const uint64_t turn = since < turn_max ? turn_max - since : 0;
    return (listing_quality(listing, offer) << TURN_BITS) + (int64_t)turn;
}

static uint64_t audience_bits(const struct offer *offer)
{
    const struct offer_terms *terms = &offer->terms;
    uint64_t bits = BIT_OF_ACCOUNT(offer->machine->owner);
    const struct offer_account *accounts = terms->accounts.items;
    switch (terms->audience) {
    case OFFER_AUDIENCE_ANYONE:
        return BIT_ANYONE;
    case OFFER_AUDIENCE_ACCOUNTS:
        for (size_t i = 0; i < terms->accounts.count; i++)
            bits |= BIT_OF_ACCOUNT(accounts[i].account);
        return bits;
    case OFFER_AUDIENCE_GROUP:
        return bits | BIT_OF_GROUP(terms->group);
    case OFFER_AUDIENCE_COUNT:
        break;
    }
    UNREACHABLE("an audience without bits");
}

static uint64_t bits_of(struct listing *listing, const struct offer *offer)
{
    const struct offer_terms *terms = &offer->terms;
    const struct probe *probe = &offer->machine->probe;
    uint64_t bits = audience_bits(offer);
    bits |= labels_borne(&listing->labels, 'l', terms->labels);
    bits |= labels_borne(&listing->labels, 'l', text_of(probe->labels));
    bits |= labels_borne(&listing->labels, 'g',
                         terms->gpu_model.size ? terms->gpu_model : text_of(probe->gpu_model));
    bits |= terms->roles & MACHINE_ROLE_WORKER ? BIT_WORKER : 0;
    bits |= terms->roles & MACHINE_ROLE_SERVER ? BIT_SERVER : 0;
    bits |= terms->roles == MACHINE_ROLE_SERVER ? BIT_DEDICATED : 0;
    bits |= terms->network >= OFFER_NETWORK_JOB ? BIT_NETWORK_JOB : 0;
    bits |= terms->network >= OFFER_NETWORK_OPEN ? BIT_NETWORK_OPEN : 0;
    bits |= terms->install >= OFFER_INSTALL_WHEELS ? BIT_INSTALL_WHEELS : 0;
    bits |= terms->install >= OFFER_INSTALL_INDEX ? BIT_INSTALL_INDEX : 0;
    return bits;
}

static void set_room(uint8_t *keys, struct resources room)
{
    keys[0] = level_of(room.cores_milli);
    keys[1] = level_of(room.ram_bytes >> MIB_BITS);
    keys[2] = level_of(room.gpus_milli);
    keys[3] = level_of(room.disk_bytes >> MIB_BITS);
    keys[4] = level_of(room.bandwidth_kbit);
}

static int64_t gpu_ram_bytes(const struct offer *offer)
{
    return offer->terms.gpu_ram_bytes ? offer->terms.gpu_ram_bytes
                                      : offer->machine->probe.gpu_ram_bytes;
}

static struct book_point point_of(struct listing *listing, const struct offer *offer,
                                  int64_t now_ms)
{
    const struct offer_terms *terms = &offer->terms;
    const struct probe *probe = &offer->machine->probe;
    struct book_point point = {.bits = bits_of(listing, offer)};
    set_room(&point.keys[LISTING_CORES], offer_free(offer));
    set_room(&point.keys[LISTING_ALL_CORES], terms->resources);
    point.keys[LISTING_SPEED] = level_of(probe->speed_weight_milli);
    point.keys[LISTING_SLOWNESS] = level_below(probe->speed_weight_milli);
    point.keys[LISTING_RELIABILITY] = level_of(machine_reliability_milli(offer->machine));
    point.keys[LISTING_GPU_RAM] = level_of(gpu_ram_bytes(offer) >> MIB_BITS);
    point.keys[LISTING_OPEN_UNTIL] =
        level_of_instant(listing, window_open_until_ms(offer_window(offer), now_ms));
    point.keys[LISTING_MAX_LEASE] =
        terms->max_lease_ms ? level_of_run(terms->max_lease_ms) : UINT8_MAX;
    point.keys[LISTING_NEARNESS] = probe->rtt_us ? level_below(probe->rtt_us) : 0;
    point.keys[LISTING_CORE_CHEAPNESS] = level_below(terms->minimum.core_micro);
    point.keys[LISTING_GPU_CHEAPNESS] = level_below(terms->minimum.gpu_micro);
    return point;
}

/* Which of eight classes: class 0 below the first bound, and twice as wide as the one before. */
static uint32_t class_of(int64_t value, int64_t first_bound)
{
    uint32_t class = 0;
    for (int64_t bound = first_bound; class < 7 && value >= bound; bound *= 2)
        class ++;
    return class;
}

/* What decides where an entry lies. */
struct likeness {
    struct resources free;
    struct resources all;
    int64_t gpu_ram_bytes;
    uint64_t bits;
    int64_t quality;
};

/*
 * Where alike offers lie. Those with nothing left lie apart, those of one quality together: a
 * search goes from the best quality down and passes what is used up. Then by what is free, and then
 * by what is wished for most, the highest bit of each class first.
 */
static uint32_t order_of(const struct likeness *like)
{
    const uint64_t labels = like->bits & ((UINT64_C(1) << 44) - 1);
    const uint32_t cores = class_of(like->free.cores_milli, 1000);
    const uint32_t ram = class_of(like->free.ram_bytes >> MIB_BITS, 512);
    const uint32_t classes[] = {
        class_of(like->all.gpus_milli, 1),
        (uint32_t)((labels * UINT64_C(0x9e3779b97f4a7c15)) >> 61),
        class_of(like->gpu_ram_bytes >> MIB_BITS, 2048),
        class_of(like->all.disk_bytes >> MIB_BITS, 8192),
    };
    uint32_t order = (uint32_t)(cores == 0) << 1 | (ram == 0);
    order = order << QUALITY_BITS | (uint32_t)(QUALITY_MAX - like->quality);
    order = order << 1 | ((like->bits & BIT_SERVER) != 0);
    order = order << 3 | cores;
    order = order << 3 | ram;
    for (int bit = 2; bit >= 0; bit--)
        for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
            order = order << 1 | (classes[i] >> bit & 1);
    return order;
}

void listing_init(struct listing *listing)
{
    listing->price = price_cold_start();
    listing->book = book_new();
    labels_init(&listing->labels);
}

void listing_done(struct listing *listing)
{
    book_free(listing->book);
    labels_done(&listing->labels);
}

void listing_remove(struct listing *listing, struct offer *offer)
{
    if (offer->listing_number)
        book_remove(listing->book, offer->listing_number);
    offer->listing_number = 0;
}

void listing_update(struct listing *listing, struct offer *offer, int64_t now_ms)
{
    const struct machine *machine = offer->machine;
    if (machine->state != MACHINE_STATE_ONLINE || machine->is_barred || !offer->is_open) {
        listing_remove(listing, offer);
        return;
    }
    if (listing->began_ms == 0)
        listing->began_ms = now_ms;
    struct book_entry entry = {.point = point_of(listing, offer, now_ms),
                               .score = score_of(listing, offer),
                               .id = offer->id,
                               .item = offer};
    entry.order = order_of(&(struct likeness){.free = offer_free(offer),
                                              .all = offer->terms.resources,
                                              .gpu_ram_bytes = gpu_ram_bytes(offer),
                                              .bits = entry.point.bits,
                                              .quality = listing_quality(listing, offer)});
    if (offer->listing_number)
        book_change(listing->book, offer->listing_number, &entry);
    else
        offer->listing_number = book_add(listing->book, &entry);
}

/* ---- Wishes ---------------------------------------------------------------------------------- */

/* What a lender may ask for one unit at most: all that is posted for the lease, per unit of this
 * resource. */
static uint8_t dearest_minimum(const struct price_lock *lock, struct price_units units,
                               enum price_resource resource)
{
    const int64_t milli = price_units_get(&units, resource);
    if (milli <= 0)
        return 0;
    const int64_t hourly_micro = price_hourly_lock_micro(units, lock);
    const __int128 per_unit = (__int128)(hourly_micro + 1) * 1000 / milli + 1;
    return per_unit > INT32_MAX ? 0 : level_below((int64_t)per_unit);
}

static void want_price(struct book_point *least, const struct match_wish *wish,
                       enum machine_role role)
{
    const struct resources wanted = wish_resources(wish, role);
    int64_t slowest = PRICE_SPEED_MILLI_MIN;
    if (role == MACHINE_ROLE_WORKER && wish->request->wishes.min_speed_milli > slowest)
        slowest = wish->request->wishes.min_speed_milli;
    /* The slower the machine, the more the other resources weigh against a core's minimum; the
     * faster, the more its cores weigh against a GPU's. */
    least->keys[LISTING_CORE_CHEAPNESS] =
        dearest_minimum(&wish->lock, price_units(wanted, slowest), PRICE_CORE);
    least->keys[LISTING_GPU_CHEAPNESS] =
        dearest_minimum(&wish->lock, price_units(wanted, PRICE_SPEED_MILLI_MAX), PRICE_GPU);
}

static void want_machine(struct book_point *least, const struct listing *listing,
                         const struct job_wishes *wishes)
{
    least->bits |= labels_wished(&listing->labels, 'l', text_of(wishes->labels));
    least->bits |= labels_wished(&listing->labels, 'g', text_of(wishes->gpu_model));
    least->bits |= wishes->network >= OFFER_NETWORK_JOB ? BIT_NETWORK_JOB : 0;
    least->bits |= wishes->network >= OFFER_NETWORK_OPEN ? BIT_NETWORK_OPEN : 0;
    least->bits |= wishes->install >= OFFER_INSTALL_WHEELS ? BIT_INSTALL_WHEELS : 0;
    least->bits |= wishes->install >= OFFER_INSTALL_INDEX ? BIT_INSTALL_INDEX : 0;
    least->keys[LISTING_GPU_RAM] = level_of(wishes->gpu_ram_bytes >> MIB_BITS);
    least->keys[LISTING_SPEED] = level_of(wishes->min_speed_milli);
    least->keys[LISTING_RELIABILITY] = level_of(wishes->min_reliability_milli);
}

/* All that does not change with the hour: of a request, for one role. */
static struct book_wish standing_wish(const struct listing *listing,
                                      const struct job_request *request, enum machine_role role)
{
    struct book_wish wish = book_wish_any();
    if (role == MACHINE_ROLE_SERVER) {
        wish.least.bits |= BIT_SERVER;
        set_room(&wish.least.keys[LISTING_ALL_CORES], request->server);
    } else {
        wish.least.bits |= BIT_WORKER;
        set_room(&wish.least.keys[LISTING_ALL_CORES], request->worker);
        want_machine(&wish.least, listing, &request->wishes);
        if (request->wishes.max_rtt_us > 0 && job_request_nodes_max(request) > 1)
            listing_want_near(&wish, request->wishes.max_rtt_us);
    }
    wish.least.keys[LISTING_MAX_LEASE] = level_of_run(request->max_run_ms);
    return wish;
}

struct book_wish listing_wish(const struct listing *listing, const struct match_wish *wish,
                              enum machine_role role, enum listing_room room, bool with_dearer)
{
    struct book_wish found = standing_wish(listing, wish->request, role);
    if (room == LISTING_FREE)
        set_room(&found.least.keys[LISTING_CORES], wish_resources(wish, role));
    found.least.keys[LISTING_OPEN_UNTIL] =
        level_of_instant(listing, wish->latest_start_ms + wish->request->max_run_ms);
    if (!with_dearer)
        want_price(&found.least, wish, role);
    found.any_bits = BIT_ANYONE | BIT_OF_ACCOUNT(wish->request->account);
    if (wish->group)
        found.any_bits |= BIT_OF_GROUP(wish->group);
    return found;
}

void listing_want_near(struct book_wish *wish, int64_t rtt_us)
{
    wish->least.keys[LISTING_NEARNESS] = level_below(rtt_us);
}

void listing_want_dedicated(struct book_wish *wish)
{
    wish->least.bits |= BIT_DEDICATED;
}

/* ---- Waiting jobs ---------------------------------------------------------------------------- */

void waiting_init(struct waiting_list *waiting)
{
    *waiting = (struct waiting_list){.book = book_new()};
}

void waiting_done(struct waiting_list *waiting)
{
    book_search_done(&waiting->search);
    book_free(waiting->book);
}

static void add_role(struct waiting_list *waiting, const struct listing *listing, struct job *job,
                     enum machine_role role)
{
    struct book_wish wish = standing_wish(listing, &job->request, role);
    const struct resources wanted =
        role == MACHINE_ROLE_SERVER ? job->request.server : job->request.worker;
    set_room(&wish.least.keys[LISTING_CORES], wanted);
    wish.least.keys[LISTING_FEW_NODES] = level_of(job->request.num_nodes);
    /* A word no offer bore so far may come with the next. */
    if (wish.least.bits & LABELS_NEVER)
        wish.least.bits = (wish.least.bits & ~((UINT64_C(1) << 44) - 1));
    const bool is_server = role == MACHINE_ROLE_SERVER;
    job->waiting_numbers[is_server] =
        book_add(waiting->book,
                 &(struct book_entry){.point = book_point_negate(wish.least),
                                      .score = queue_score(job->request.is_rush, job->turn.tag),
                                      .id = job->id * 2 + is_server,
                                      .order = order_of(&(struct likeness){
                                          .free = wanted, .all = wanted, .bits = wish.least.bits}),
                                      .item = job});
}

void waiting_add(struct waiting_list *waiting, const struct listing *listing, struct job *job)
{
    if (job->waiting_numbers[0])
        return;
    add_role(waiting, listing, job, MACHINE_ROLE_WORKER);
    if (job->request.server.cores_milli > 0)
        add_role(waiting, listing, job, MACHINE_ROLE_SERVER);
}

void waiting_remove(struct waiting_list *waiting, struct job *job)
{
    for (int i = 0; i < 2; i++) {
        if (job->waiting_numbers[i])
            book_remove(waiting->book, job->waiting_numbers[i]);
        job->waiting_numbers[i] = 0;
    }
}

struct book_wish waiting_wish(struct listing *listing, const struct offer *offer, int64_t now_ms,
                              enum listing_room room)
{
    struct book_point point = point_of(listing, offer, now_ms);
    if (room == LISTING_ALL)
        set_room(&point.keys[LISTING_CORES], offer->terms.resources);
    /* Jobs say nothing of these, but their entries carry the negated lack of a wish. */
    point.keys[LISTING_FEW_NODES] = UINT8_MAX;
    return (struct book_wish){.least = book_point_negate(point)};
}

void waiting_want_few(struct book_wish *wish, int64_t node_count)
{
    wish->least.keys[LISTING_FEW_NODES] = level_below(node_count);
}
