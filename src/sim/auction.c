#include "sim/auction.h"

#include <stdlib.h>

static int compare_bids(const void *left, const void *right)
{
    const struct auction_bid *a = left, *b = right;
    if (a->worth != b->worth)
        return a->worth > b->worth ? -1 : 1;
    return (a->tag > b->tag) - (a->tag < b->tag);
}

static int compare_asks(const void *left, const void *right)
{
    const struct auction_ask *a = left, *b = right;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->tag > b->tag) - (a->tag < b->tag);
}

/* Supply taken up so far: lenders are opened from the cheapest on, as far as they are needed. */
struct supply {
    const struct auction_ask *asks;
    size_t ask_count;
    size_t opened;
    double capacity[AUCTION_RESOURCES];
    double used[AUCTION_RESOURCES];
};

static bool has_room(const struct supply *supply, const double units[AUCTION_RESOURCES])
{
    for (int i = 0; i < AUCTION_RESOURCES; i++)
        if (supply->used[i] + units[i] > supply->capacity[i] + 1e-9)
            return false;
    return true;
}

/* Opens lenders whose cost the bid covers until it fits; leaves things as they were if it cannot.
 */
static bool serve(struct supply *supply, const struct auction_bid *bid)
{
    struct supply tried = *supply;
    while (!has_room(&tried, bid->units)) {
        if (tried.opened == tried.ask_count || tried.asks[tried.opened].cost > bid->worth)
            return false;
        for (int i = 0; i < AUCTION_RESOURCES; i++)
            tried.capacity[i] += tried.asks[tried.opened].units[i];
        tried.opened++;
    }
    for (int i = 0; i < AUCTION_RESOURCES; i++)
        tried.used[i] += bid->units[i];
    *supply = tried;
    return true;
}

static double mean_cost(const struct supply *supply)
{
    double sum = 0;
    for (size_t i = 0; i < supply->opened; i++)
        sum += supply->asks[i].cost;
    return supply->opened > 0 ? sum / (double)supply->opened : 0;
}

struct auction_outcome auction_clear(enum auction_rule rule, struct auction_bid *bids,
                                     size_t bid_count, struct auction_ask *asks, size_t ask_count)
{
    qsort(bids, bid_count, sizeof(*bids), compare_bids);
    qsort(asks, ask_count, sizeof(*asks), compare_asks);
    struct supply supply = {.asks = asks, .ask_count = ask_count};
    size_t served_count = 0, last = 0, losing = bid_count;
    for (size_t i = 0; i < bid_count; i++) {
        bids[i].is_served = serve(&supply, &bids[i]);
        if (bids[i].is_served) {
            last = i;
            served_count++;
        } else if (losing == bid_count) {
            losing = i;
        }
    }
    if (served_count == 0)
        return (struct auction_outcome){0};
    const double bid = bids[last].worth;
    const double ask = supply.opened > 0 ? asks[supply.opened - 1].cost : 0;
    double price = (bid + ask) / 2;
    if (rule == AUCTION_MCAFEE) {
        const double next_bid = losing < bid_count ? bids[losing].worth : 0;
        const double next_ask = supply.opened < ask_count ? asks[supply.opened].cost : bid;
        price = (next_bid + next_ask) / 2;
        if (price > bid || price < ask) {
            bids[last].is_served = false;
            served_count--;
            for (int i = 0; i < AUCTION_RESOURCES; i++)
                supply.used[i] -= bids[last].units[i];
            price = bid;
        }
    }
    struct auction_outcome outcome = {
        .price = price, .served_count = served_count, .mean_cost = mean_cost(&supply)};
    for (int i = 0; i < AUCTION_RESOURCES; i++)
        outcome.used[i] = supply.used[i];
    for (size_t i = 0; i < supply.opened; i++)
        asks[i].is_serving = true;
    return outcome;
}
