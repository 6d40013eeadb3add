#include "market/machine.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[MACHINE_STATE_COUNT] = {
    [MACHINE_STATE_OFFLINE] = "offline",
    [MACHINE_STATE_ONLINE] = "online",
    [MACHINE_STATE_UNREACHABLE] = "unreachable",
};

static const char *const yield_names[MACHINE_YIELD_COUNT] = {
    [MACHINE_YIELD_NONE] = "none",         [MACHINE_YIELD_LOW] = "low",
    [MACHINE_YIELD_FROZEN] = "frozen",     [MACHINE_YIELD_PAUSED] = "paused",
    [MACHINE_YIELD_DRAINING] = "draining", [MACHINE_YIELD_PAUSED_REMOTELY] = "paused_remotely",
};

const char *machine_yield_name(enum machine_yield yield)
{
    ASSERT(yield < MACHINE_YIELD_COUNT);
    return yield_names[yield];
}

bool machine_yield_is_held(enum machine_yield yield)
{
    return yield == MACHINE_YIELD_FROZEN || yield == MACHINE_YIELD_PAUSED ||
           yield == MACHINE_YIELD_PAUSED_REMOTELY;
}

enum machine_yield machine_yield_for_others(enum machine_yield yield)
{
    return yield < MACHINE_YIELD_FROZEN ? MACHINE_YIELD_NONE : MACHINE_YIELD_PAUSED;
}

const char *machine_state_name(enum machine_state state)
{
    ASSERT(state < MACHINE_STATE_COUNT);
    return state_names[state];
}

static const char *const availability_names[MACHINE_AVAILABILITY_COUNT] = {
    [MACHINE_OFFLINE] = "offline", [MACHINE_UNREACHABLE] = "unreachable",
    [MACHINE_PAUSED] = "paused",   [MACHINE_BUSY] = "busy",
    [MACHINE_FREE] = "free",
};

const char *machine_availability_name(enum machine_availability availability)
{
    ASSERT(availability < MACHINE_AVAILABILITY_COUNT);
    return availability_names[availability];
}

static bool is_ended(const char *field, size_t size)
{
    return strnlen(field, size) < size;
}

int probe_check(const struct probe *probe, struct error *error)
{
    if (!resources_are_valid(probe->resources) || probe->resources.cores_milli == 0)
        return error_set(error, ERROR_INVALID, "the machine's resources are out of range");
    if (probe->speed_weight_milli < PRICE_SPEED_MILLI_MIN ||
        probe->speed_weight_milli > PRICE_SPEED_MILLI_MAX)
        return error_set(error, ERROR_INVALID, "speed_weight_milli must be from %d to %d",
                         PRICE_SPEED_MILLI_MIN, PRICE_SPEED_MILLI_MAX);
    if (!is_ended(probe->cpu_model, sizeof(probe->cpu_model)) ||
        !is_ended(probe->labels, sizeof(probe->labels)))
        return error_set(error, ERROR_INVALID, "cpu_model or labels are too long");
    if (!offer_are_labels(text_of(probe->labels)))
        return error_set(error, ERROR_INVALID, "labels must be words with one comma between");
    if (!is_ended(probe->gpu_model, sizeof(probe->gpu_model)) ||
        name_check_text(text_of(probe->gpu_model), "gpu_model", MACHINE_GPU_MODEL_SIZE - 1, error) <
            0)
        return error_set(error, ERROR_INVALID, "gpu_model is too long or not text");
    if (probe->gpu_ram_bytes < 0 || probe->gpu_ram_bytes > RESOURCES_BYTES_MAX ||
        probe->rtt_us < 0 || probe->rtt_us > MACHINE_RTT_US_MAX || probe->ram_bytes_per_s < 0 ||
        probe->ram_bytes_per_s > MACHINE_RAM_BYTES_PER_S_MAX)
        return error_set(error, ERROR_INVALID,
                         "gpu_ram_bytes, rtt_us or ram_bytes_per_s is out of range");
    return name_check_text(text_of(probe->cpu_model), "cpu_model", MACHINE_CPU_MODEL_SIZE - 1,
                           error);
}

bool probe_equal(const struct probe *left, const struct probe *right)
{
    return resources_equal(left->resources, right->resources) &&
           left->speed_weight_milli == right->speed_weight_milli &&
           left->gpu_ram_bytes == right->gpu_ram_bytes && left->rtt_us == right->rtt_us &&
           left->ram_bytes_per_s == right->ram_bytes_per_s &&
           left->forbids_job_network == right->forbids_job_network &&
           left->allows_open_network == right->allows_open_network &&
           left->allows_images == right->allows_images &&
           left->forbids_install == right->forbids_install &&
           left->allows_index == right->allows_index &&
           left->forbids_programs == right->forbids_programs &&
           !strcmp(left->gpu_model, right->gpu_model) && !strcmp(left->labels, right->labels) &&
           !strcmp(left->cpu_model, right->cpu_model);
}

enum offer_network probe_network(const struct probe *probe)
{
    if (probe->forbids_job_network)
        return OFFER_NETWORK_NONE;
    return probe->allows_open_network ? OFFER_NETWORK_OPEN : OFFER_NETWORK_JOB;
}

enum offer_install probe_install(const struct probe *probe)
{
    if (probe->forbids_install)
        return OFFER_INSTALL_NONE;
    return probe->allows_index ? OFFER_INSTALL_INDEX : OFFER_INSTALL_WHEELS;
}

void machine_add_offer(struct machine *machine, struct offer *offer)
{
    ASSERT(machine->offer_count < MACHINE_OFFERS_MAX);
    machine->offers =
        realloc(machine->offers, (machine->offer_count + 1) * sizeof(*machine->offers));
    ASSERT(machine->offers);
    size_t at = machine->offer_count++;
    for (; at > 0 && machine->offers[at - 1]->id > offer->id; at--)
        machine->offers[at] = machine->offers[at - 1];
    machine->offers[at] = offer;
}

void machine_remove_offer(struct machine *machine, const struct offer *offer)
{
    size_t at = 0;
    while (at < machine->offer_count && machine->offers[at] != offer)
        at++;
    ASSERT(at < machine->offer_count);
    machine->offer_count--;
    memmove(machine->offers + at, machine->offers + at + 1,
            (machine->offer_count - at) * sizeof(*machine->offers));
}

struct offer *machine_offer(const struct machine *machine, uint64_t offer)
{
    for (size_t i = 0; i < machine->offer_count; i++)
        if (machine->offers[i]->id == offer)
            return machine->offers[i];
    return NULL;
}

struct resources machine_free(const struct machine *machine)
{
    struct resources found = machine->probe.resources;
    if (found.bandwidth_kbit == 0) /* not known: what the owner offers counts */
        found.bandwidth_kbit = RESOURCES_KBIT_MAX;
    return resources_subtract(found, machine->leased);
}

bool machine_is_lent(const struct machine *machine)
{
    return machine->state == MACHINE_STATE_ONLINE && !machine->is_barred &&
           machine->yield < MACHINE_YIELD_FROZEN;
}

bool machine_takes_leases(const struct machine *machine, enum machine_role role, int64_t now_ms)
{
    if (!machine_is_lent(machine))
        return false;
    for (size_t i = 0; i < machine->offer_count; i++)
        if ((machine->offers[i]->terms.roles & role) && offer_is_open(machine->offers[i], now_ms))
            return true;
    return false;
}

static bool has_open_offer(const struct machine *machine)
{
    for (size_t i = 0; i < machine->offer_count; i++)
        if (machine->offers[i]->is_open)
            return true;
    return false;
}

struct resources machine_open_free(const struct machine *machine)
{
    const struct resources nothing = {0};
    struct resources sum = {0};
    if (!machine_is_lent(machine))
        return nothing;
    for (size_t i = 0; i < machine->offer_count; i++)
        if (machine->offers[i]->is_open)
            sum = resources_add(sum, resources_larger(offer_free(machine->offers[i]), nothing));
    return resources_smaller(sum, resources_larger(machine_free(machine), nothing));
}

enum machine_availability machine_availability(const struct machine *machine)
{
    if (machine->state == MACHINE_STATE_OFFLINE)
        return MACHINE_OFFLINE;
    if (machine->state == MACHINE_STATE_UNREACHABLE)
        return MACHINE_UNREACHABLE;
    if (!machine_is_lent(machine) || !has_open_offer(machine))
        return MACHINE_PAUSED;
    /* No lease does without cores and memory. */
    const struct resources left = machine_open_free(machine);
    return left.cores_milli > 0 && left.ram_bytes > 0 ? MACHINE_FREE : MACHINE_BUSY;
}

struct resources machine_offered(const struct machine *machine)
{
    struct resources most = {0};
    for (size_t i = 0; i < machine->offer_count; i++)
        most = resources_larger(most, machine->offers[i]->terms.resources);
    return most;
}

int64_t machine_speed_counted_milli(int64_t claimed_milli, bool is_unproven)
{
    return is_unproven && claimed_milli > 1000 ? 1000 : claimed_milli;
}

int64_t machine_speed_milli(const struct machine *machine)
{
    return machine_speed_counted_milli(machine->probe.speed_weight_milli, machine->is_unproven);
}

int64_t machine_reliability_milli(const struct machine *machine)
{
    return reputation_reliability_milli(&machine->reputation);
}
