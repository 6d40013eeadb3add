#include "market/wish.h"

#include "base/assert.h"
#include "market/labels.h"
#include "market/offer_shared.h"
#include "market/pair.h"

#include <string.h>

static const char *const names[WISH_TEST_COUNT] = {
    [WISH_TEST_ROLE] = "role",           [WISH_TEST_AUDIENCE] = "audience",
    [WISH_TEST_SPARE] = "spare",         [WISH_TEST_ONLINE] = "online",
    [WISH_TEST_OPEN] = "open",           [WISH_TEST_RUN_TIME] = "max_run_time",
    [WISH_TEST_CORES] = "cores",         [WISH_TEST_RAM] = "ram",
    [WISH_TEST_GPUS] = "gpus",           [WISH_TEST_GPU_MODEL] = "gpu_model",
    [WISH_TEST_GPU_RAM] = "gpu_ram",     [WISH_TEST_DISK] = "disk",
    [WISH_TEST_BANDWIDTH] = "bandwidth", [WISH_TEST_LABELS] = "labels",
    [WISH_TEST_NETWORK] = "network",     [WISH_TEST_INSTALL] = "install",
    [WISH_TEST_IMAGE] = "image",         [WISH_TEST_PROGRAM] = "program",
    [WISH_TEST_SPEED] = "min_speed",     [WISH_TEST_RELIABILITY] = "min_reliability",
    [WISH_TEST_RTT] = "max_rtt",         [WISH_TEST_PRICE] = "price",
    [WISH_TEST_ROOM] = "room",
};

const char *wish_test_name(enum wish_test test)
{
    ASSERT(test < WISH_TEST_COUNT);
    return names[test];
}

struct resources wish_resources(const struct match_wish *wish, enum machine_role role)
{
    return role == MACHINE_ROLE_SERVER ? wish->request->server : wish->request->worker;
}

int64_t wish_max_rtt_us(const struct match_wish *wish, enum machine_role role)
{
    const struct job_request *whole = wish->beside ? &wish->beside->request : wish->request;
    const bool has_pairs = role == MACHINE_ROLE_WORKER && job_request_nodes_max(whole) > 1;
    return has_pairs ? wish->request->wishes.max_rtt_us : 0;
}

/* ---- Prices ---------------------------------------------------------------------------------- */

static bool asks_for_nothing(const struct price_vector *minimum)
{
    return (minimum->core_micro | minimum->ram_micro | minimum->gpu_micro | minimum->disk_micro) ==
           0;
}

bool wish_is_accepted(const struct match_wish *wish, const struct offer *offer,
                      struct resources resources)
{
    if (wish->request->is_spare || asks_for_nothing(&offer->terms.minimum))
        return true;
    const struct price_units units = price_units(resources, machine_speed_milli(offer->machine));
    const int64_t run_ms = wish->request->max_run_ms;
    return price_bill_lock_micro(units, &wish->lock, wish->now_ms, run_ms) >=
           price_bill_micro(units, offer->terms.minimum, run_ms);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static struct text gpu_model_of(const struct offer *offer)
{
    return offer->shared->gpu_model.size ? offer->shared->gpu_model
                                         : text_of(offer->machine->probe.gpu_model);
}

static bool ends_in_time(const struct match_wish *wish, const struct offer *offer)
{
    const int64_t run_ms = wish->request->max_run_ms;
    return (offer->terms.max_lease_ms == 0 || offer->terms.max_lease_ms >= run_ms) &&
           window_open_until_ms(offer_window(offer), wish->now_ms) - wish->latest_start_ms >=
               run_ms;
}

static bool is_near(const struct match_wish *wish, enum machine_role role,
                    const struct offer *offer)
{
    const int64_t max_us = wish_max_rtt_us(wish, role);
    const int64_t rtt_us = offer->machine->probe.rtt_us;
    if (max_us == 0 || (rtt_us > 0 && rtt_us <= max_us))
        return true;
    const int64_t nearest_us = pair_nearest_us(offer->machine, wish->now_ms);
    return nearest_us > 0 && nearest_us <= max_us;
}

bool wish_has(const struct match_wish *wish, enum machine_role role, enum wish_test test)
{
    const struct resources wanted = wish_resources(wish, role);
    const struct job_wishes *wishes = &wish->request->wishes;
    const bool is_worker = role == MACHINE_ROLE_WORKER;
    switch (test) {
    case WISH_TEST_SPARE:
        return wish->request->is_spare;
    case WISH_TEST_GPUS:
        return wanted.gpus_milli > 0;
    case WISH_TEST_DISK:
        return wanted.disk_bytes > 0;
    case WISH_TEST_BANDWIDTH:
        return wanted.bandwidth_kbit > 0;
    case WISH_TEST_GPU_MODEL:
        return is_worker && wishes->gpu_model[0];
    case WISH_TEST_GPU_RAM:
        return is_worker && wishes->gpu_ram_bytes > 0;
    case WISH_TEST_LABELS:
        return is_worker && wishes->labels[0];
    case WISH_TEST_NETWORK:
        return is_worker && wishes->network > OFFER_NETWORK_NONE;
    case WISH_TEST_INSTALL:
        return is_worker && wishes->install > OFFER_INSTALL_NONE;
    case WISH_TEST_IMAGE:
        return is_worker && wishes->has_image;
    case WISH_TEST_PROGRAM:
        return is_worker && wishes->has_program;
    case WISH_TEST_SPEED:
        return is_worker && wishes->min_speed_milli > 0;
    case WISH_TEST_RELIABILITY:
        return is_worker && wishes->min_reliability_milli > 0;
    case WISH_TEST_RTT:
        return wish_max_rtt_us(wish, role) > 0;
    case WISH_TEST_ROLE:
    case WISH_TEST_AUDIENCE:
    case WISH_TEST_ONLINE:
    case WISH_TEST_OPEN:
    case WISH_TEST_RUN_TIME:
    case WISH_TEST_CORES:
    case WISH_TEST_RAM:
    case WISH_TEST_PRICE:
    case WISH_TEST_ROOM:
        return true;
    case WISH_TEST_COUNT:
        break;
    }
    UNREACHABLE("a test without a name");
}

static bool passes(const struct match_wish *wish, enum machine_role role, enum wish_test test,
                   const struct offer *offer)
{
    const struct offer_kept_terms *terms = &offer->terms;
    const struct probe *probe = &offer->machine->probe;
    const struct job_wishes *wishes = &wish->request->wishes;
    const struct resources wanted = wish_resources(wish, role);
    switch (test) {
    case WISH_TEST_ROLE:
        return (terms->roles & role) != 0;
    case WISH_TEST_AUDIENCE:
        return offer_admits(offer, wish->request->account, wish->group);
    case WISH_TEST_SPARE:
        return terms->is_spare;
    case WISH_TEST_ONLINE:
        return machine_is_lent(offer->machine);
    case WISH_TEST_OPEN:
        return offer_is_open(offer, wish->now_ms);
    case WISH_TEST_RUN_TIME:
        return ends_in_time(wish, offer);
    case WISH_TEST_CORES:
        return terms->resources.cores_milli >= wanted.cores_milli;
    case WISH_TEST_RAM:
        return terms->resources.ram_bytes >= wanted.ram_bytes;
    case WISH_TEST_GPUS:
        return terms->resources.gpus_milli >= wanted.gpus_milli;
    case WISH_TEST_GPU_MODEL:
        return text_equal(gpu_model_of(offer), text_of(wishes->gpu_model));
    case WISH_TEST_GPU_RAM:
        return (terms->gpu_ram_bytes ? terms->gpu_ram_bytes : probe->gpu_ram_bytes) >=
               wishes->gpu_ram_bytes;
    case WISH_TEST_DISK:
        return terms->resources.disk_bytes >= wanted.disk_bytes;
    case WISH_TEST_BANDWIDTH:
        return terms->resources.bandwidth_kbit >= wanted.bandwidth_kbit;
    case WISH_TEST_LABELS:
        return labels_are_in(text_of(wishes->labels), offer->shared->labels,
                             text_of(probe->labels));
    case WISH_TEST_NETWORK:
        return terms->network >= (uint8_t)wishes->network &&
               probe_network(probe) >= wishes->network;
    case WISH_TEST_INSTALL:
        return terms->install >= (uint8_t)wishes->install &&
               probe_install(probe) >= wishes->install;
    case WISH_TEST_IMAGE:
        return probe->allows_images;
    case WISH_TEST_PROGRAM:
        return !probe->forbids_programs;
    case WISH_TEST_SPEED:
        return machine_speed_milli(offer->machine) >= wishes->min_speed_milli;
    case WISH_TEST_RELIABILITY:
        return machine_reliability_milli(offer->machine) >= wishes->min_reliability_milli;
    case WISH_TEST_RTT:
        return is_near(wish, role, offer);
    case WISH_TEST_PRICE:
        return wish_is_accepted(wish, offer, wanted);
    case WISH_TEST_ROOM:
        return resources_fit(wanted,
                             wish->request->is_spare ? offer_spare_free(offer) : offer_free(offer));
    case WISH_TEST_COUNT:
        break;
    }
    UNREACHABLE("a test that tests nothing");
}

bool wish_passes(const struct match_wish *wish, enum machine_role role, enum wish_test test,
                 const struct offer *offer)
{
    return !wish_has(wish, role, test) || passes(wish, role, test, offer);
}

bool wish_suits(const struct match_wish *wish, enum machine_role role, const struct offer *offer)
{
    for (enum wish_test test = 0; test < WISH_TEST_PRICE; test++)
        if (!wish_passes(wish, role, test, offer))
            return false;
    return true;
}
