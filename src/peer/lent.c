#include "peer/lent.h"

#include "base/assert.h"
#include "base/units.h"
#include "peer/function_share.h"

#include <inttypes.h>

void lent_init(struct lent *lent, const struct lease_limits *ceiling)
{
    *lent = (struct lent){.ceiling = *ceiling};
}

void lent_set_offers(struct lent *lent, const struct offers_message *offers)
{
    ASSERT(offers->offer_count <= LEASE_OFFERS_MAX);
    lent->is_told = true;
    lent->offer_count = offers->offer_count;
    if (offers->offer_count > 0)
        memcpy(lent->offers, offers->offers, offers->offer_count * sizeof(*lent->offers));
}

struct resources lent_ceiling(const struct lent *lent)
{
    return (struct resources){.cores_milli = lent->ceiling.cores_milli,
                              .ram_bytes = lent->ceiling.ram_bytes,
                              .disk_bytes = lent->ceiling.disk_bytes,
                              .gpus_milli = INT64_C(1000) * __builtin_popcount(lent->ceiling.gpus)};
}

struct lent_use lent_use_of(const struct lease_document *document)
{
    return (struct lent_use){.offer = document->offer,
                             .resources = {.cores_milli = document->cores_milli,
                                           .ram_bytes = document->ram_bytes,
                                           .disk_bytes = document->disk_bytes,
                                           .gpus_milli = document->gpus_milli}};
}

int lent_check_permissions(const struct lent *lent, const struct lease_document *document,
                           struct error *error)
{
    const struct lease_limits *ceiling = &lent->ceiling;
    enum offer_network wanted = OFFER_NETWORK_NONE;
    if (lease_document_has_network(document))
        wanted =
            text_equal(document->network, TEXT("job")) ? OFFER_NETWORK_JOB : OFFER_NETWORK_OPEN;
    if (wanted > ceiling->network)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " wants the network \"%s\"; this machine's owner allows "
                         "\"%s\" (souk lend --network)",
                         document->lease, offer_network_name(wanted),
                         offer_network_name(ceiling->network));
    if (document->has_image && !ceiling->has_images)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " brings an image, and this machine's owner allows none "
                         "(souk lend --images yes)",
                         document->lease);
    if (ceiling->forbids_programs &&
        (lease_document_is_command(document) || document->sync.verify > 0))
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " is no plain training, and this machine lends functions",
                         document->lease);
    if (document->has_wheels && ceiling->install < OFFER_INSTALL_WHEELS)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " brings packages to install, and this machine's owner "
                         "allows none (souk lend --install wheels)",
                         document->lease);
    if (document->fetches_packages && ceiling->install < OFFER_INSTALL_INDEX)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64
                         " has packages fetched from this machine's index, and its "
                         "owner allows that to none (souk lend --install index)",
                         document->lease);
    return 0;
}

static const struct lent_offer *find_offer(const struct lent *lent, uint64_t offer)
{
    for (size_t i = 0; i < lent->offer_count; i++)
        if (lent->offers[i].offer == offer)
            return &lent->offers[i];
    return NULL;
}

static int64_t room_left(const struct lent *lent, const struct lent_use *running,
                         size_t running_count)
{
    const int64_t room_bytes = lent->ceiling.process_bytes;
    int64_t left_bytes = room_bytes;
    for (size_t i = 0; i < running_count; i++)
        left_bytes -= function_share_of_room(running[i].resources.ram_bytes, room_bytes);
    return left_bytes > 0 ? left_bytes : 0;
}

bool lent_has_room(const struct lent *lent, const struct lent_use *running, size_t running_count)
{
    return lent->ceiling.process_bytes == 0 ||
           room_left(lent, running, running_count) >= function_share_least_bytes();
}

static int check_room(const struct lent *lent, const struct lease_document *document,
                      const struct lent_use *running, size_t running_count, struct error *error)
{
    const int64_t room_bytes = lent->ceiling.process_bytes;
    const int64_t wanted = function_share_of_room(document->ram_bytes, room_bytes);
    const int64_t left = room_left(lent, running, running_count);
    char needs[UNITS_TEXT_SIZE], has[UNITS_TEXT_SIZE], all[UNITS_TEXT_SIZE];
    if (room_bytes == 0 || wanted <= left)
        return 0;
    return error_set(error, ERROR_REFUSED,
                     "the process of lease %" PRIu64
                     " needs %s of this machine; %s are left of the %s that its owner gives those "
                     "of all leases (souk lend --memory)",
                     document->lease, units_format_bytes(wanted, needs),
                     units_format_bytes(left, has), units_format_bytes(room_bytes, all));
}

int lent_check(const struct lent *lent, const struct lease_document *document,
               const struct lent_use *running, size_t running_count, struct error *error)
{
    const struct lent_offer *offer = find_offer(lent, document->offer);
    const struct lent_use wanted = lent_use_of(document);
    struct resources of_offer = wanted.resources, of_machine = wanted.resources;
    if (!lent->is_told)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " came before the market said what is lent",
                         document->lease);
    if (!offer)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " is under offer %" PRIu64
                         ", which is none of this machine's",
                         document->lease, document->offer);
    if (!(lent->ceiling.roles & offer->roles & (1u << document->role)))
        return error_set(error, ERROR_REFUSED, "lease %" PRIu64 " has the role %s, not lent here",
                         document->lease, lease_role_name(document->role));
    if (lent_check_permissions(lent, document, error) < 0)
        return -1;
    for (size_t i = 0; i < running_count; i++) {
        of_machine = resources_add(of_machine, running[i].resources);
        if (running[i].offer == document->offer)
            of_offer = resources_add(of_offer, running[i].resources);
    }
    if (!resources_fit(of_machine, lent_ceiling(lent)))
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " asks for more than is lent of this machine",
                         document->lease);
    if (!resources_fit(of_offer, offer->resources))
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " asks for more than is left of offer %" PRIu64,
                         document->lease, offer->offer);
    return check_room(lent, document, running, running_count, error);
}

/* What is left of one GPU; one that somebody has whole has nothing left. */
static int64_t left_of_gpu(uint32_t gpu, const struct lent_use *running, size_t running_count)
{
    int64_t left_milli = 1000;
    for (size_t i = 0; i < running_count; i++)
        if (running[i].gpus & gpu) {
            const int64_t milli = running[i].resources.gpus_milli;
            left_milli -= milli < 1000 ? milli : 1000;
        }
    return left_milli;
}

int lent_choose_gpus(const struct lent *lent, int64_t gpus_milli, const struct lent_use *running,
                     size_t running_count, uint32_t *out_gpus, struct error *error)
{
    const bool is_part = gpus_milli < 1000;
    int64_t wanted = is_part ? gpus_milli > 0 : gpus_milli / 1000;
    if (!is_part && gpus_milli % 1000 != 0)
        return error_set(error, ERROR_REFUSED, "GPUs are lent whole, or a part of one");
    uint32_t chosen = 0;
    /* Parts go together: first where some are already. */
    for (int pass = is_part ? 0 : 1; pass < 2; pass++)
        for (uint32_t gpu = 1; gpu && wanted > 0; gpu <<= 1) {
            const int64_t left_milli = left_of_gpu(gpu, running, running_count);
            const bool is_whole = left_milli == 1000;
            if (!(lent->ceiling.gpus & gpu) || is_whole != (pass == 1) ||
                (is_part && left_milli < gpus_milli))
                continue;
            chosen |= gpu;
            wanted--;
        }
    if (wanted > 0)
        return error_set(error, ERROR_REFUSED, "not so many GPUs are free here");
    *out_gpus = chosen;
    return 0;
}
