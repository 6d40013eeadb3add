#include "market/listing.h"

#include "base/assert.h"
#include "market/level.h"
#include "market/listing_internal.h"
#include "market/offer_shared.h"
#include "market/pair.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)LISTING_KEY_COUNT == (int)BOOK_KEY_COUNT,
               "each key of the book has a meaning here");

enum { TURN_BITS = 40 };
enum { QUALITY_BITS = 8, QUALITY_MAX = (1 << QUALITY_BITS) - 1 };
enum { ROUND_SIZE_BITS = 14, ROUND_BITS = TURN_BITS - ROUND_SIZE_BITS };

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

bool listing_is_dear(const struct price_vector *posted, const struct offer *offer)
{
    const struct price_vector *minimum = &offer->terms.minimum;
    return minimum->core_micro > posted->core_micro || minimum->ram_micro > posted->ram_micro ||
           minimum->gpu_micro > posted->gpu_micro || minimum->disk_micro > posted->disk_micro;
}

int64_t listing_quality(const struct listing *listing, const struct offer *offer)
{
    const struct machine *machine = offer->machine;
    if (listing_is_dear(&listing->price, offer))
        return 0;
    return 4 * (machine_reliability_milli(machine) / 50) +
           2 * half_octaves(machine_speed_milli(machine), PRICE_SPEED_MILLI_MIN) +
           nearness(machine->probe.rtt_us);
}

static uint64_t since_of(const struct offer *offer)
{
    return offer->last_lease > offer->id ? offer->last_lease : offer->id;
}

/* Leases and offers have ids from one counter, so no two offers of a quality are equal: the book
 * would have to look at all that are. */
static int64_t score_of(const struct listing *listing, const struct offer *offer)
{
    const uint64_t turn_max = (UINT64_C(1) << TURN_BITS) - 1;
    const uint64_t since = since_of(offer);
    const uint64_t turn = since < turn_max ? turn_max - since : 0;
    return (listing_quality(listing, offer) << TURN_BITS) + (int64_t)turn;
}

static uint64_t audience_bits(const struct offer *offer)
{
    const struct offer_kept_terms *terms = &offer->terms;
    uint64_t bits = LISTING_BIT_OF_ACCOUNT(offer->machine->owner);
    const struct offer_account *accounts = offer->shared->accounts.items;
    switch ((enum offer_audience)terms->audience) {
    case OFFER_AUDIENCE_ANYONE:
        return LISTING_BIT_ANYONE;
    case OFFER_AUDIENCE_ACCOUNTS:
        for (size_t i = 0; i < offer->shared->accounts.count; i++)
            bits |= LISTING_BIT_OF_ACCOUNT(accounts[i].account);
        return bits;
    case OFFER_AUDIENCE_GROUP:
        return bits | LISTING_BIT_OF_GROUP(terms->group);
    case OFFER_AUDIENCE_COUNT:
        break;
    }
    UNREACHABLE("an audience without bits");
}

static uint64_t bits_of(struct listing *listing, const struct offer *offer)
{
    const struct offer_kept_terms *terms = &offer->terms;
    const struct probe *probe = &offer->machine->probe;
    uint64_t bits = audience_bits(offer);
    bits |= labels_borne(&listing->labels, 'l', offer->shared->labels);
    bits |= labels_borne(&listing->labels, 'l', text_of(probe->labels));
    bits |= labels_borne(&listing->labels, 'g',
                         offer->shared->gpu_model.size ? offer->shared->gpu_model
                                                       : text_of(probe->gpu_model));
    bits |= terms->roles & MACHINE_ROLE_WORKER ? LISTING_BIT_WORKER : 0;
    bits |= terms->roles & MACHINE_ROLE_SERVER ? LISTING_BIT_SERVER : 0;
    bits |= terms->roles == MACHINE_ROLE_SERVER ? LISTING_BIT_DEDICATED : 0;
    const enum offer_network most = probe_network(probe);
    const uint8_t network = terms->network < (uint8_t)most ? terms->network : (uint8_t)most;
    bits |= network >= OFFER_NETWORK_JOB ? LISTING_BIT_NETWORK_JOB : 0;
    bits |= network >= OFFER_NETWORK_OPEN ? LISTING_BIT_NETWORK_OPEN : 0;
    if (probe->allows_images)
        bits |= labels_borne(&listing->labels, 'i', TEXT("image"));
    const enum offer_install allowed = probe_install(probe);
    const uint8_t install = terms->install < (uint8_t)allowed ? terms->install : (uint8_t)allowed;
    bits |= install >= OFFER_INSTALL_WHEELS ? LISTING_BIT_INSTALL_WHEELS : 0;
    bits |= install >= OFFER_INSTALL_INDEX ? LISTING_BIT_INSTALL_INDEX : 0;
    bits |= terms->is_spare ? LISTING_BIT_SPARE : 0;
    return bits;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/*
 * The largest value of any offer that has had the level of a key. A level covers an eighth of an
 * octave: without this, a wish for a little more than a million machines have would look at every
 * one of them in vain. Values of keys that are negated are negated too. Nothing is forgotten: it
 * says where not to look, and the tests say who passes.
 */
struct listing_bounds {
    int64_t largest[LISTING_KEY_COUNT][LEVEL_COUNT];
};

static struct listing_bounds *bounds_new(void)
{
    struct listing_bounds *bounds = malloc(sizeof(*bounds));
    ASSERT(bounds);
    for (int key = 0; key < LISTING_KEY_COUNT; key++)
        for (int level = 0; level < LEVEL_COUNT; level++)
            bounds->largest[key][level] = INT64_MIN;
    return bounds;
}

static void has(const struct listing *listing, struct book_point *point, enum listing_key key,
                uint8_t level, int64_t value)
{
    int64_t *largest = &listing->bounds->largest[key][level];
    point->keys[key] = level;
    if (value > *largest)
        *largest = value;
}

/* `bounds` NULL: for offers yet to come. */
static void wants(const struct listing_bounds *bounds, struct book_point *least,
                  enum listing_key key, uint8_t level, int64_t value)
{
    const bool is_above_all = bounds && level && value > bounds->largest[key][level];
    least->keys[key] = (uint8_t)(is_above_all && level < UINT8_MAX ? level + 1 : level);
}

static void has_room(const struct listing *listing, struct book_point *point,
                     enum listing_key first, struct resources room)
{
    has(listing, point, first, level_of(room.cores_milli), room.cores_milli);
    has(listing, point, first + 1, level_of_bytes(room.ram_bytes), room.ram_bytes);
    has(listing, point, first + 3, level_of(room.gpus_milli), room.gpus_milli);
    has(listing, point, first + 2, level_of_bytes(room.disk_bytes), room.disk_bytes);
    has(listing, point, first + 4, level_of(room.bandwidth_kbit), room.bandwidth_kbit);
}

void listing_want_room(const struct listing_bounds *bounds, struct book_point *least,
                       enum listing_key first, struct resources room)
{
    wants(bounds, least, first, level_of(room.cores_milli), room.cores_milli);
    wants(bounds, least, first + 1, level_of_bytes(room.ram_bytes), room.ram_bytes);
    wants(bounds, least, first + 3, level_of(room.gpus_milli), room.gpus_milli);
    wants(bounds, least, first + 2, level_of_bytes(room.disk_bytes), room.disk_bytes);
    wants(bounds, least, first + 4, level_of(room.bandwidth_kbit), room.bandwidth_kbit);
}

static int64_t gpu_ram_bytes(const struct offer *offer)
{
    return offer->terms.gpu_ram_bytes ? offer->terms.gpu_ram_bytes
                                      : offer->machine->probe.gpu_ram_bytes;
}

static struct book_point point_of(const struct listing *listing, const struct offer *offer,
                                  int64_t now_ms, uint64_t bits)
{
    const struct offer_kept_terms *terms = &offer->terms;
    const int64_t speed = machine_speed_milli(offer->machine);
    const int64_t reliability = machine_reliability_milli(offer->machine);
    const int64_t lease_ms = terms->max_lease_ms ? terms->max_lease_ms : INT64_MAX;
    struct book_point point = {.bits = bits};
    has_room(listing, &point, LISTING_CORES, offer_free(offer));
    has_room(listing, &point, LISTING_ALL_CORES, terms->resources);
    has(listing, &point, LISTING_SPEED, level_of(speed), speed);
    has(listing, &point, LISTING_SLOWNESS, level_below(speed), -speed);
    has(listing, &point, LISTING_RELIABILITY, level_of_share(reliability), reliability);
    has(listing, &point, LISTING_GPU_RAM, level_of_bytes(gpu_ram_bytes(offer)),
        gpu_ram_bytes(offer));
    point.keys[LISTING_OPEN_UNTIL] =
        level_of_instant(listing->began_ms, window_open_until_ms(offer_window(offer), now_ms));
    has(listing, &point, LISTING_MAX_LEASE,
        terms->max_lease_ms ? level_of_run(terms->max_lease_ms) : UINT8_MAX, lease_ms);
    const int64_t near_us = pair_nearness_us(offer->machine);
    has(listing, &point, LISTING_NEARNESS, near_us ? level_below(near_us) : 0, -near_us);
    has(listing, &point, LISTING_CORE_CHEAPNESS, level_below(terms->minimum.core_micro),
        -terms->minimum.core_micro);
    has(listing, &point, LISTING_GPU_CHEAPNESS, level_below(terms->minimum.gpu_micro),
        -terms->minimum.gpu_micro);
    return point;
}

struct book_point listing_point(struct listing *listing, const struct offer *offer, int64_t now_ms)
{
    return point_of(listing, offer, now_ms, bits_of(listing, offer));
}

/* Which of eight classes: class 0 below the first bound, and twice as wide as the one before. */
static uint32_t class_of(int64_t value, int64_t first_bound)
{
    uint32_t class = 0;
    for (int64_t bound = first_bound; class < 7 && value >= bound; bound *= 2)
        class ++;
    return class;
}

/*
 * Where alike offers lie. Those with nothing left lie apart, those of one quality together: a
 * search goes from the best quality down and passes what is used up. Those of a quality lie by when
 * they were last leased, for that is how they take turns, but only by rounds: within one those with
 * a free GPU lie together, for whom few look who need none, then by cores, the role and RAM, and
 * then by what else is wished for, the highest bit of each class first.
 */
uint64_t listing_order(const struct listing_likeness *like)
{
    const uint64_t labels = like->bits & ((UINT64_C(1) << 44) - 1);
    const uint32_t cores = class_of(like->free.cores_milli, 1000);
    const uint32_t ram = class_of(like->free.ram_bytes >> 20, 512);
    const uint32_t classes[] = {
        class_of(like->all.gpus_milli, 1),
        (uint32_t)((labels * UINT64_C(0x9e3779b97f4a7c15)) >> 61),
        class_of(like->gpu_ram_bytes >> 20, 2048),
        class_of(like->all.disk_bytes >> 20, 8192),
    };
    uint64_t order = (uint64_t)(cores == 0) << 1 | (ram == 0);
    order = order << QUALITY_BITS | (uint64_t)(QUALITY_MAX - like->quality);
    order = order << ROUND_BITS | (like->since >> ROUND_SIZE_BITS & ((1U << ROUND_BITS) - 1));
    order = order << 1 | (like->free.gpus_milli > 0);
    order = order << 3 | cores;
    order = order << 1 | ((like->bits & LISTING_BIT_SERVER) != 0);
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
    listing->bounds = bounds_new();
    labels_init(&listing->labels);
}

void listing_done(struct listing *listing)
{
    book_free(listing->book);
    free(listing->bounds);
    labels_done(&listing->labels);
}

void listing_remove(struct listing *listing, struct offer *offer)
{
    if (offer->listing_number)
        book_remove(listing->book, offer->listing_number);
    offer->listing_number = 0;
}

static struct book_entry entry_of(const struct listing *listing, struct offer *offer,
                                  int64_t now_ms, uint64_t bits)
{
    return (struct book_entry){.point = point_of(listing, offer, now_ms, bits),
                               .score = score_of(listing, offer),
                               .id = offer->id,
                               .order = listing_order(&(struct listing_likeness){
                                   .free = offer_free(offer),
                                   .all = offer->terms.resources,
                                   .gpu_ram_bytes = gpu_ram_bytes(offer),
                                   .bits = bits,
                                   .quality = listing_quality(listing, offer),
                                   .since = since_of(offer)}),
                               .item = offer};
}

void listing_update(struct listing *listing, struct offer *offer, int64_t now_ms)
{
    const struct machine *machine = offer->machine;
    if (!machine_is_lent(machine) || !offer->is_open) {
        listing_remove(listing, offer);
        return;
    }
    if (listing->began_ms == 0)
        listing->began_ms = now_ms;
    const struct book_entry entry = entry_of(listing, offer, now_ms, bits_of(listing, offer));
    if (offer->listing_number)
        book_change(listing->book, offer->listing_number, &entry);
    else
        offer->listing_number = book_add(listing->book, &entry);
}

void listing_update_leased(struct listing *listing, struct offer *offer, int64_t now_ms)
{
    if (!offer->listing_number)
        return;
    const struct book_entry entry =
        entry_of(listing, offer, now_ms, book_bits(listing->book, offer->listing_number));
    book_change(listing->book, offer->listing_number, &entry);
}

/* ---- Wishes ---------------------------------------------------------------------------------- */

/* What a lender may ask for one unit at most: all that is posted for the lease, per unit of this
 * resource. */
static int64_t dearest_minimum_micro(const struct price_lock *lock, struct price_units units,
                                     enum price_resource resource)
{
    const int64_t milli = price_units_get(&units, resource);
    if (milli <= 0)
        return INT64_MAX;
    const int64_t hourly_micro = price_hourly_lock_micro(units, lock);
    const __int128 per_unit = (__int128)(hourly_micro + 1) * 1000 / milli + 1;
    return per_unit > INT32_MAX ? INT64_MAX : (int64_t)per_unit;
}

static void want_minimum(const struct listing *listing, struct book_point *least,
                         enum listing_key key, int64_t micro)
{
    if (micro < INT64_MAX)
        wants(listing->bounds, least, key, level_below(micro), -micro);
}

static void want_price(const struct listing *listing, struct book_point *least,
                       const struct match_wish *wish, enum machine_role role)
{
    const struct resources wanted = wish_resources(wish, role);
    int64_t slowest = PRICE_SPEED_MILLI_MIN;
    if (role == MACHINE_ROLE_WORKER && wish->request->wishes.min_speed_milli > slowest)
        slowest = wish->request->wishes.min_speed_milli;
    /* The slower the machine, the more the other resources weigh against a core's minimum; the
     * faster, the more its cores weigh against a GPU's. */
    want_minimum(listing, least, LISTING_CORE_CHEAPNESS,
                 dearest_minimum_micro(&wish->lock, price_units(wanted, slowest), PRICE_CORE));
    want_minimum(
        listing, least, LISTING_GPU_CHEAPNESS,
        dearest_minimum_micro(&wish->lock, price_units(wanted, PRICE_SPEED_MILLI_MAX), PRICE_GPU));
}

static void want_machine(const struct listing *listing, const struct listing_bounds *bounds,
                         struct book_point *least, const struct job_wishes *wishes)
{
    least->bits |= labels_wished(&listing->labels, 'l', text_of(wishes->labels));
    least->bits |= labels_wished(&listing->labels, 'g', text_of(wishes->gpu_model));
    if (wishes->has_image)
        least->bits |= labels_wished(&listing->labels, 'i', TEXT("image"));
    least->bits |= wishes->network >= OFFER_NETWORK_JOB ? LISTING_BIT_NETWORK_JOB : 0;
    least->bits |= wishes->network >= OFFER_NETWORK_OPEN ? LISTING_BIT_NETWORK_OPEN : 0;
    least->bits |= wishes->install >= OFFER_INSTALL_WHEELS ? LISTING_BIT_INSTALL_WHEELS : 0;
    least->bits |= wishes->install >= OFFER_INSTALL_INDEX ? LISTING_BIT_INSTALL_INDEX : 0;
    wants(bounds, least, LISTING_GPU_RAM, level_of_bytes(wishes->gpu_ram_bytes),
          wishes->gpu_ram_bytes);
    wants(bounds, least, LISTING_SPEED, level_of(wishes->min_speed_milli), wishes->min_speed_milli);
    wants(bounds, least, LISTING_RELIABILITY, level_of_share(wishes->min_reliability_milli),
          wishes->min_reliability_milli);
}

struct book_wish listing_standing_wish(const struct listing *listing,
                                       const struct listing_bounds *bounds,
                                       const struct job_request *request, enum machine_role role)
{
    struct book_wish wish = book_wish_any();
    if (role == MACHINE_ROLE_SERVER) {
        wish.least.bits |= LISTING_BIT_SERVER;
        listing_want_room(bounds, &wish.least, LISTING_ALL_CORES, request->server);
    } else {
        wish.least.bits |= LISTING_BIT_WORKER;
        listing_want_room(bounds, &wish.least, LISTING_ALL_CORES, request->worker);
        want_machine(listing, bounds, &wish.least, &request->wishes);
        if (request->wishes.max_rtt_us > 0 && job_request_nodes_max(request) > 1)
            wants(bounds, &wish.least, LISTING_NEARNESS, level_below(request->wishes.max_rtt_us),
                  -request->wishes.max_rtt_us);
    }
    wants(bounds, &wish.least, LISTING_MAX_LEASE, level_of_run(request->max_run_ms),
          request->max_run_ms);
    return wish;
}

struct book_wish listing_wish(const struct listing *listing, const struct match_wish *wish,
                              enum machine_role role, enum listing_room room, bool with_dearer)
{
    const struct listing_bounds *bounds = listing->bounds;
    struct book_wish found = listing_standing_wish(listing, bounds, wish->request, role);
    if (room == LISTING_FREE) {
        /* Who has it free has it in all. */
        memset(&found.least.keys[LISTING_ALL_CORES], 0, LISTING_ROOM_KEYS);
        listing_want_room(bounds, &found.least, LISTING_CORES, wish_resources(wish, role));
    }
    found.least.keys[LISTING_OPEN_UNTIL] =
        level_of_instant(listing->began_ms, wish->latest_start_ms + wish->request->max_run_ms);
    if (wish->request->is_spare)
        found.least.bits |= LISTING_BIT_SPARE; /* whatever the lender asks of those who pay */
    else if (!with_dearer)
        want_price(listing, &found.least, wish, role);
    found.any_bits = LISTING_BIT_ANYONE | LISTING_BIT_OF_ACCOUNT(wish->request->account);
    if (wish->group)
        found.any_bits |= LISTING_BIT_OF_GROUP(wish->group);
    return found;
}

void listing_want_near(const struct listing *listing, struct book_wish *wish, int64_t rtt_us)
{
    wants(listing->bounds, &wish->least, LISTING_NEARNESS, level_below(rtt_us), -rtt_us);
}

void listing_want_dedicated(struct book_wish *wish)
{
    wish->least.bits |= LISTING_BIT_DEDICATED;
}
