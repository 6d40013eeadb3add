#include "market/pair.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Where the peer is, or belongs. */
static size_t find(const struct machine_pairs *pairs, uint64_t peer)
{
    size_t low = 0, high = pairs->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (pairs->peers[middle].machine->id < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct pair_peer *peer_of(const struct machine *machine, const struct machine *peer)
{
    const struct machine_pairs *pairs = machine->pairs;
    if (!pairs)
        return NULL;
    const size_t at = find(pairs, peer->id);
    return at < pairs->count && pairs->peers[at].machine == peer ? &pairs->peers[at] : NULL;
}

static void drop(struct machine *machine, const struct machine *peer)
{
    struct machine_pairs *pairs = machine->pairs;
    const size_t at = find(pairs, peer->id);
    ASSERT(at < pairs->count && pairs->peers[at].machine == peer);
    pairs->count--;
    memmove(&pairs->peers[at], &pairs->peers[at + 1],
            (pairs->count - at) * sizeof(pairs->peers[0]));
}

static void drop_oldest(struct machine *machine)
{
    const struct machine_pairs *pairs = machine->pairs;
    size_t oldest = 0;
    for (size_t i = 1; i < pairs->count; i++)
        if (pairs->peers[i].measured_ms < pairs->peers[oldest].measured_ms)
            oldest = i;
    struct machine *peer = pairs->peers[oldest].machine;
    drop(machine, peer);
    // NOLINTNEXTLINE(readability-suspicious-call-argument): at both ends
    drop(/* machine= */ peer, /* peer= */ machine);
}

static void make_room(struct machine *machine)
{
    if (!machine->pairs) {
        machine->pairs = calloc(1, sizeof(*machine->pairs));
        ASSERT(machine->pairs);
    }
    if (machine->pairs->count == MACHINE_PAIRS_MAX)
        drop_oldest(machine);
}

static void put_end(struct machine *machine, struct machine *peer, int64_t rtt_us, int64_t now_ms)
{
    struct machine_pairs *pairs = machine->pairs;
    const size_t at = find(pairs, peer->id);
    if (at == pairs->count || pairs->peers[at].machine != peer) {
        memmove(&pairs->peers[at + 1], &pairs->peers[at],
                (pairs->count - at) * sizeof(pairs->peers[0]));
        pairs->count++;
    }
    pairs->peers[at] = (struct pair_peer){peer, rtt_us, now_ms};
}

void pair_put(struct machine *a, struct machine *b, int64_t rtt_us, int64_t now_ms)
{
    ASSERT(a != b && rtt_us > 0);
    if (!peer_of(a, b)) {
        make_room(a);
        make_room(b);
    }
    put_end(a, b, rtt_us, now_ms);
    // NOLINTNEXTLINE(readability-suspicious-call-argument): both ends know of it
    put_end(/* machine= */ b, /* peer= */ a, rtt_us, now_ms);
}

void pair_forget_machine(struct machine *machine)
{
    struct machine_pairs *pairs = machine->pairs;
    for (size_t i = 0; pairs && i < pairs->count; i++)
        drop(pairs->peers[i].machine, machine);
    pair_free(machine);
}

void pair_free(struct machine *machine)
{
    free(machine->pairs);
    machine->pairs = NULL;
}

bool pair_is_known(const struct machine *a, const struct machine *b)
{
    return peer_of(a, b) != NULL;
}

bool pair_is_full(const struct machine *machine)
{
    return machine->pairs && machine->pairs->count == MACHINE_PAIRS_MAX;
}

static bool is_fresh(const struct pair_peer *peer, int64_t now_ms)
{
    return now_ms - peer->measured_ms < PAIR_FRESH_MS;
}

int64_t pair_direct_us(const struct machine *a, const struct machine *b, int64_t now_ms)
{
    const struct pair_peer *peer = peer_of(a, b);
    return peer && is_fresh(peer, now_ms) ? peer->rtt_us : 0;
}

int64_t pair_rtt_us(const struct machine *a, const struct machine *b, int64_t now_ms)
{
    const int64_t direct_us = pair_direct_us(a, b, now_ms);
    const int64_t sum_us =
        a->probe.rtt_us && b->probe.rtt_us ? a->probe.rtt_us + b->probe.rtt_us : 0;
    if (direct_us == 0 || sum_us == 0)
        return direct_us + sum_us;
    return direct_us < sum_us ? direct_us : sum_us;
}

int64_t pair_nearest_us(const struct machine *machine, int64_t now_ms)
{
    int64_t least_us = 0;
    for (size_t i = 0; machine->pairs && i < machine->pairs->count; i++) {
        const struct pair_peer *peer = &machine->pairs->peers[i];
        if (is_fresh(peer, now_ms) && (least_us == 0 || peer->rtt_us < least_us))
            least_us = peer->rtt_us;
    }
    return least_us;
}

int64_t pair_nearness_us(const struct machine *machine)
{
    int64_t least_us = machine->probe.rtt_us;
    for (size_t i = 0; machine->pairs && i < machine->pairs->count; i++)
        if (least_us == 0 || machine->pairs->peers[i].rtt_us < least_us)
            least_us = machine->pairs->peers[i].rtt_us;
    return least_us;
}
