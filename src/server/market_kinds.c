#include "server/market_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is taken for granted of a machine before it has shown more: a loss in fifty hours, as if ten
 * hours had been seen; a start as the demo's. */
static const double losses_prior = 0.2, hours_prior = 10, start_prior_s = 3;
/* One's own runs count most; one that waited long for its data says little of the next. */
static const double start_weight_own = 4, start_weight_other = 0.5, start_most_s = 60;

void kind_name(const struct kind_figures *figures, char out[OBSERVATION_NAME_SIZE])
{
    const int64_t gpus = (figures->gpus_milli + 999) / 1000;
    const int size =
        snprintf(out, OBSERVATION_NAME_SIZE, "%.4gc@%.1f", (double)figures->cores_milli / 1000,
                 (double)figures->speed_weight_milli / 1000);
    if (gpus > 0 && size > 0 && size < OBSERVATION_NAME_SIZE)
        snprintf(out + size, OBSERVATION_NAME_SIZE - (size_t)size, "+%" PRId64 "x%.*s", gpus,
                 figures->gpu_model.size ? (int)figures->gpu_model.size : 3,
                 figures->gpu_model.size ? figures->gpu_model.data : "GPU");
}

static struct market_kind *find(struct market_kind *kinds, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    if (*count == MARKET_KINDS_MAX)
        return NULL;
    struct market_kind *kind = &kinds[(*count)++];
    *kind = (struct market_kind){0};
    snprintf(kind->name, sizeof(kind->name), "%s", name);
    return kind;
}

static void count_machine(struct market_kind *kind, const struct core_offered *offered)
{
    const struct machine *machine = offered->machine;
    const struct probe *probe = &machine->probe;
    kind->cores_milli = offered->resources.cores_milli;
    kind->gpus_milli = offered->resources.gpus_milli;
    kind->count++;
    kind->speed_milli += machine_speed_milli(machine);
    kind->hourly_micro = price_add_micro(kind->hourly_micro, offered->hourly_micro);
    kind->bandwidth_kbit += probe->resources.bandwidth_kbit;
    kind->bandwidth_count += probe->resources.bandwidth_kbit > 0;
    kind->rtt_us += probe->rtt_us;
    kind->rtt_count += probe->rtt_us > 0;
    kind->losses += machine->reputation.lost + machine->reputation.reclaimed;
    kind->leased_ms += machine->reputation.leased_ms;
    if (kind->count == 1 || offered->busy_since_ms < kind->busy_since_ms)
        kind->busy_since_ms = offered->busy_since_ms;
    if (offered->busy_until_ms > kind->busy_until_ms)
        kind->busy_until_ms = offered->busy_until_ms;
}

static void note_first(int64_t *first_ms, int64_t until_ms)
{
    if (*first_ms == 0 || until_ms < *first_ms)
        *first_ms = until_ms;
}

static struct market_kind *kind_of(struct market_kinds *kinds, const struct core_offered *offered,
                                   const char *name)
{
    const bool is_worker = offered->role == LEASE_ROLE_WORKER;
    if (offered->busy_until_ms == 0)
        return is_worker ? find(kinds->workers, &kinds->worker_count, name)
                         : find(kinds->servers, &kinds->server_count, name);
    note_first(is_worker ? &kinds->worker_free_ms : &kinds->server_free_ms, offered->busy_until_ms);
    return is_worker ? find(kinds->busy, &kinds->busy_count, name) : NULL;
}

void market_kinds_add(struct market_kinds *kinds, const struct core_offered *offered)
{
    const struct machine *machine = offered->machine;
    const bool is_worker = offered->role == LEASE_ROLE_WORKER;
    uint64_t *last = is_worker ? &kinds->last_worker : &kinds->last_server;
    char name[OBSERVATION_NAME_SIZE];
    kind_name(&(struct kind_figures){.cores_milli = offered->resources.cores_milli,
                                     .speed_weight_milli = machine_speed_milli(machine),
                                     .gpus_milli = offered->resources.gpus_milli,
                                     .gpu_model = text_of(machine->probe.gpu_model)},
              name);
    if (*last == machine->id)
        return;
    *last = machine->id;
    struct market_kind *kind = kind_of(kinds, offered, name);
    if (kind)
        count_machine(kind, offered);
}

int64_t market_kind_bandwidth_kbit(const struct market_kind *kind)
{
    return kind->bandwidth_count > 0 ? kind->bandwidth_kbit / kind->bandwidth_count : 0;
}

int64_t market_kind_price_micro(const struct market_kind *kind)
{
    return kind->count > 0 ? kind->hourly_micro / kind->count : 0;
}

double market_kinds_start_s(const struct observation *observations, size_t count,
                            const struct signature *signature)
{
    double sum = start_prior_s, weights = 1;
    for (size_t i = 0; i < count; i++) {
        const bool is_own =
            signature_likeness(&observations[i].signature, signature) <= LIKENESS_VARIED;
        const double start_s = observations[i].start_s;
        const double weight = is_own ? start_weight_own : start_weight_other;
        if (!(start_s > 0))
            continue;
        sum += weight * (start_s < start_most_s ? start_s : start_most_s);
        weights += weight;
    }
    return sum / weights;
}

struct candidate market_kind_candidate(const struct market_kind *kind)
{
    const double hours = (double)kind->leased_ms / 3600000;
    const double rtt_us = kind->rtt_count > 0 ? (double)kind->rtt_us / kind->rtt_count : 0;
    return (struct candidate){
        .name = kind->name,
        .source = CANDIDATE_MARKET,
        .speed_weight = (uint32_t)(kind->speed_milli / kind->count),
        .cores_milli = (uint32_t)kind->cores_milli,
        .gpu_count = (uint32_t)((kind->gpus_milli + 999) / 1000),
        .price_micro_per_hour = market_kind_price_micro(kind),
        .count_max = kind->count,
        .bytes_per_s = 125.0 * (double)market_kind_bandwidth_kbit(kind),
        .rtt_s = 1e-6 * rtt_us,
        .start_s = start_prior_s,
        .losses_per_hour = ((double)kind->losses + losses_prior) / (hours + hours_prior),
    };
}
