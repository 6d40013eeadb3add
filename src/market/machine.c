#include "market/machine.h"

#include "base/assert.h"

static const char *const state_names[MACHINE_STATE_COUNT] = {
    [MACHINE_STATE_OFFLINE] = "offline",
    [MACHINE_STATE_ONLINE] = "online",
    [MACHINE_STATE_UNREACHABLE] = "unreachable",
};

const char *machine_state_name(enum machine_state state)
{
    ASSERT(state < MACHINE_STATE_COUNT);
    return state_names[state];
}

/* "avx2,arm64": words of printable characters with one comma between, or nothing. */
static bool are_labels(struct text labels)
{
    size_t word_size = 0;
    for (size_t i = 0; i < labels.size; i++) {
        const char character = labels.data[i];
        if (character == ',') {
            if (word_size == 0)
                return false;
            word_size = 0;
        } else if (character <= ' ' || character == 0x7f) {
            return false;
        } else {
            word_size++;
        }
    }
    return labels.size == 0 || word_size > 0;
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
    if (!are_labels(text_of(probe->labels)))
        return error_set(error, ERROR_INVALID, "labels must be words with one comma between");
    return name_check_text(text_of(probe->cpu_model), "cpu_model", MACHINE_CPU_MODEL_SIZE - 1,
                           error);
}

static bool is_price(struct price_vector price)
{
    const int64_t parts[] = {price.core_micro, price.ram_micro, price.gpu_micro, price.disk_micro};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i] < 0 || parts[i] > PRICE_PER_HOUR_MAX)
            return false;
    return true;
}

int offer_check(const struct offer *offer, const struct probe *probe, struct error *error)
{
    if (!resources_are_valid(offer->resources) || offer->resources.cores_milli == 0)
        return error_set(error, ERROR_INVALID, "the offer's resources are out of range");
    if (!resources_fit(offer->resources, probe->resources))
        return error_set(error, ERROR_INVALID, "the offer is more than the machine has");
    if (offer->roles == 0 || (offer->roles & ~(uint64_t)MACHINE_ROLE_ALL))
        return error_set(error, ERROR_INVALID, "an offer has the role worker, server or both");
    if (!is_price(offer->minimum))
        return error_set(error, ERROR_INVALID, "the minimum price is out of range");
    return 0;
}

struct resources machine_free(const struct machine *machine)
{
    const struct resources offered =
        machine->has_offer ? machine->offer.resources : (struct resources){0};
    return resources_subtract(offered, machine->leased);
}

bool machine_takes_leases(const struct machine *machine, enum machine_role role)
{
    return machine->state == MACHINE_STATE_ONLINE && machine->has_offer &&
           !machine->offer.is_paused && (machine->offer.roles & role);
}

bool offer_accepts_price(const struct offer *offer, struct price_units units,
                         struct price_vector price)
{
    return price_hourly_micro(units, price) >= price_hourly_micro(units, offer->minimum);
}
