/* Match: where the servers of a job go. */
#include "market/match_internal.h"

#include <string.h>

/* Whether a server may go where another of its job is. */
enum company { ALONE, TOGETHER };

/* Whether this attempt, or the job that gets one more, has a server there. */
static bool has_server_at(const struct attempt *attempt, const struct machine *machine)
{
    const struct job *job = attempt->wish->beside;
    for (size_t i = 0; i < attempt->server_count; i++)
        if (attempt->servers[i].offer->machine == machine)
            return true;
    return job && job_has_server_at(job, machine);
}

static bool may_go_to(const struct attempt *attempt, enum company company,
                      const struct machine *machine)
{
    const struct match_wish *wish = attempt->wish;
    return machine->id != wish->apart_from &&
           !(wish->beside && job_avoids(wish->beside, LEASE_ROLE_SERVER, machine)) &&
           (company == TOGETHER || !has_server_at(attempt, machine));
}

/* What to look for besides room. */
struct look {
    enum company company;
    bool is_dedicated; /* machines that take nothing but servers */
    bool with_dearer;  /* than is posted */
};

/* On a machine without a worker. */
static bool find_apart(struct attempt *attempt, struct look look, struct candidate *out_server)
{
    struct book_search *search = &attempt->matcher->search;
    struct book_wish found = listing_wish(attempt->matcher->listing, attempt->wish,
                                          MACHINE_ROLE_SERVER, LISTING_FREE, look.with_dearer);
    struct book_sort sort = attempt->sort;
    if (look.is_dedicated)
        listing_want_dedicated(&found);
    if (look.with_dearer)
        sort = match_by_minimum(attempt->wish->request->server);
    book_search_start(search, attempt->matcher->listing->book, &found, sort);
    for (struct offer *offer; (offer = book_search_next(search));)
        if (!match_is_taken(attempt, offer->machine) &&
            may_go_to(attempt, look.company, offer->machine) &&
            match_fits(attempt, MACHINE_ROLE_SERVER, offer, look.with_dearer, out_server))
            return true;
    return false;
}

/* Whether the worker has room left when the server goes to an offer of the same machine. */
static bool leave_room(const struct attempt *attempt, const struct offer *server_offer,
                       struct candidate *worker)
{
    const struct job_request *request = attempt->wish->request;
    const struct machine *machine = worker->offer->machine;
    const struct resources left =
        worker->offer == server_offer
            ? resources_subtract(worker->free, request->server)
            : resources_smaller(
                  worker->free,
                  resources_subtract(match_machine_free_for(attempt, machine), request->server));
    if (!resources_fit(request->worker, left))
        return false;
    worker->free = left;
    worker->surplus_milli = match_surplus_milli(attempt, worker);
    return true;
}

/* An offer of the worker's machine that takes the server too: beside the worker, or in its place.
 */
static bool find_at(const struct attempt *attempt, struct candidate *worker,
                    struct candidate *out_server, bool *out_is_beside)
{
    const struct machine *machine = worker->offer->machine;
    struct candidate first = {0};
    *out_is_beside = false;
    for (size_t i = 0; i < machine->offer_count && !*out_is_beside; i++)
        if (match_fits(attempt, MACHINE_ROLE_SERVER, machine->offers[i], /* with_dearer= */ false,
                       out_server)) {
            *out_is_beside = leave_room(attempt, machine->offers[i], worker);
            if (!first.offer)
                first = *out_server;
        }
    if (first.offer && !*out_is_beside)
        *out_server = first;
    return first.offer != NULL;
}

/* The worker moves to another offer of its machine if that leaves room for both. */
static bool move_beside(const struct attempt *attempt, struct candidate *worker,
                        struct candidate *out_server)
{
    const struct machine *machine = worker->offer->machine;
    bool is_beside = false;
    for (size_t i = 0; i < machine->offer_count && !is_beside; i++) {
        struct candidate moved;
        if (machine->offers[i] == worker->offer ||
            !match_fits(attempt, MACHINE_ROLE_WORKER, machine->offers[i],
                        /* with_dearer= */ false, &moved))
            continue;
        if (find_at(attempt, &moved, out_server, &is_beside) && is_beside)
            *worker = moved;
    }
    return is_beside;
}

/* Beside a worker, or in its place when there is one to spare. The last taken is the first asked.
 */
static bool find_beside(struct attempt *attempt, enum company company, struct candidate *out_server)
{
    for (size_t i = attempt->worker_count; i-- > 0;) {
        struct candidate *worker = &attempt->workers[i];
        const struct machine *machine = worker->offer->machine;
        bool is_beside;
        if (!may_go_to(attempt, company, machine) ||
            !find_at(attempt, worker, out_server, &is_beside))
            continue;
        if (is_beside)
            return true;
        if (attempt->worker_count > (size_t)attempt->wish->request->num_nodes) {
            match_leave_machine(attempt, machine);
            memmove(worker, worker + 1, (attempt->worker_count - i - 1) * sizeof(*worker));
            attempt->worker_count--;
            return true;
        }
        if (move_beside(attempt, worker, out_server))
            return true;
        attempt->needs_worker = true;
    }
    return false;
}

static bool find_in(struct attempt *attempt, enum company company, struct candidate *out_server)
{
    const struct look dedicated = {.company = company, .is_dedicated = true};
    return find_apart(attempt, dedicated, out_server) ||
           find_apart(attempt, (struct look){.company = company}, out_server) ||
           find_beside(attempt, company, out_server);
}

static bool find_dearer(struct attempt *attempt, enum company company, struct candidate *out_server)
{
    const struct look dearer = {.company = company, .with_dearer = true};
    return match_names_maximum(attempt->wish->request) && find_apart(attempt, dearer, out_server);
}

static bool find_one(struct attempt *attempt, struct candidate *out_server)
{
    const bool has_others = attempt->server_count > 0 || attempt->wish->beside;
    return find_in(attempt, ALONE, out_server) ||
           (has_others && find_in(attempt, TOGETHER, out_server)) ||
           find_dearer(attempt, ALONE, out_server) ||
           (has_others && find_dearer(attempt, TOGETHER, out_server));
}

/* The replica comes once its lead is there: what workers take beyond their wish leaves it room, on
 * one of their machines if there is no other. */
static void leave_room_for_replica(struct attempt *attempt)
{
    const struct match_wish *wish = attempt->wish;
    struct match_wish apart = *wish;
    struct candidate replica;
    if (!wish->request->has_replica || !wish->request->takes_more_cores)
        return;
    apart.apart_from = attempt->servers[0].offer->machine->id;
    attempt->wish = &apart;
    bool has_room = find_apart(attempt, (struct look){.company = TOGETHER}, &replica);
    for (size_t i = attempt->worker_count; i-- > 0 && !has_room;)
        if (may_go_to(attempt, TOGETHER, attempt->workers[i].offer->machine))
            find_at(attempt, &attempt->workers[i], &replica, &has_room);
    attempt->wish = wish;
}

bool match_find_servers(struct attempt *attempt)
{
    const size_t most = (size_t)job_request_nodes_first(attempt->wish->request);
    while (attempt->server_count < job_request_servers(attempt->wish->request)) {
        struct candidate found;
        if (!find_one(attempt, &found))
            return false;
        attempt->servers[attempt->server_count++] = found;
    }
    if (attempt->worker_count > most)
        attempt->worker_count = most;
    if (attempt->server_count > 0)
        leave_room_for_replica(attempt);
    return true;
}
