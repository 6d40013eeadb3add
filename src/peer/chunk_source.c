#include "peer/chunk_source.h"

size_t chunk_source_first(uint32_t rank, uint32_t world, size_t chunk_count)
{
    return world > 0 ? (size_t)((uint64_t)(rank % world) * chunk_count / world) : 0;
}

int64_t chunk_source_patience_ms(int64_t market_ms)
{
    if (market_ms < CHUNK_PATIENCE_MS / 2)
        return CHUNK_PATIENCE_MS;
    return market_ms < CHUNK_PATIENCE_MS_MAX / 2 ? 2 * market_ms : CHUNK_PATIENCE_MS_MAX;
}

static enum chunk_holding holding_of(const struct chunk_view *view, size_t peer, size_t chunk)
{
    return view->holdings[peer * view->chunk_count + chunk];
}

static bool is_expected(const struct chunk_view *view, size_t chunk)
{
    for (size_t peer = 0; peer < view->peer_count; peer++)
        if (holding_of(view, peer, chunk) != CHUNK_UNKNOWN)
            return true;
    return false;
}

/* Peers are tried from another one on for each chunk, so that the first is not asked for all. */
static bool choose_peer(const struct chunk_view *view, size_t chunk, int *out_peer)
{
    for (size_t i = 0; i < view->peer_count; i++) {
        const size_t peer = (chunk + i) % view->peer_count;
        if (!view->is_peer_free[peer] || holding_of(view, peer, chunk) != CHUNK_HELD)
            continue;
        *out_peer = (int)peer;
        return true;
    }
    return false;
}

bool chunk_source_choose(const struct chunk_view *view, struct chunk_choice *out_choice)
{
    const bool is_patient = view->unmoved_ms < view->patience_ms;
    bool has_market_choice = false;
    for (size_t i = 0; i < view->chunk_count; i++) {
        const size_t chunk = (view->first + i) % view->chunk_count;
        int peer = 0;
        if (view->states[chunk] != CHUNK_WAITS)
            continue;
        if (choose_peer(view, chunk, &peer)) {
            *out_choice = (struct chunk_choice){chunk, peer};
            return true;
        }
        if (has_market_choice || view->market_count >= CHUNK_MARKET_MAX ||
            (is_patient && is_expected(view, chunk)))
            continue;
        has_market_choice = true;
        *out_choice = (struct chunk_choice){chunk, CHUNK_SOURCE_MARKET};
    }
    return has_market_choice;
}
