/* Match: what the machines here do not offer at all, whoever is online, open or free now. */
#include "base/units.h"
#include "market/match.h"

#include <inttypes.h>

/* What comes and goes says nothing of the machine. */
static bool is_lasting(enum wish_test test)
{
    return test != WISH_TEST_ONLINE && test != WISH_TEST_OPEN && test != WISH_TEST_PRICE &&
           test != WISH_TEST_ROOM && test != WISH_TEST_RTT;
}

/* Some span that is still to come is long enough, and the longest lease is. */
static bool is_ever_long_enough(const struct match_wish *wish, const struct offer *offer)
{
    const struct window window = offer_window(offer);
    const int64_t run_ms = wish->request->max_run_ms;
    const int64_t needed_ms = run_ms + wish->latest_start_ms - wish->now_ms;
    if (offer->terms.max_lease_ms > 0 && offer->terms.max_lease_ms < run_ms)
        return false;
    for (size_t i = 0; i < window.span_count; i++)
        if (window.spans[i].close_ms > wish->now_ms &&
            window.spans[i].close_ms - window.spans[i].open_ms >= needed_ms)
            return true;
    return window.span_count == 0;
}

static bool may_pass(const struct match_wish *wish, enum machine_role role, enum wish_test test,
                     const struct offer *offer)
{
    if (!is_lasting(test))
        return true;
    return test == WISH_TEST_RUN_TIME ? is_ever_long_enough(wish, offer)
                                      : wish_passes(wish, role, test, offer);
}

static bool may_pass_all(const struct match_wish *wish, enum machine_role role,
                         const struct offer *offer)
{
    for (enum wish_test test = 0; test < WISH_TEST_COUNT; test++)
        if (!may_pass(wish, role, test, offer))
            return false;
    return true;
}

/* Machines with an offer that may pass `test`; with WISH_TEST_COUNT, every test. */
static size_t count_machines(struct machine *const *machines, size_t machine_count,
                             const struct match_wish *wish, enum machine_role role,
                             enum wish_test test)
{
    size_t count = 0;
    for (size_t i = 0; i < machine_count; i++) {
        bool is_found = false;
        for (size_t k = 0; k < machines[i]->offer_count && !is_found; k++)
            is_found = test == WISH_TEST_COUNT ? may_pass_all(wish, role, machines[i]->offers[k])
                                               : may_pass(wish, role, test, machines[i]->offers[k]);
        count += is_found;
    }
    return count;
}

bool match_is_lacking(struct machine *const *machines, size_t machine_count,
                      const struct match_wish *wish, enum machine_role role,
                      struct match_lack *out_lack)
{
    const bool is_server = role == MACHINE_ROLE_SERVER;
    struct match_lack lack = {.role = role,
                              .test = WISH_TEST_COUNT,
                              .wanted = is_server ? 1 : (size_t)wish->request->num_nodes};
    if (is_server && wish->request->server.cores_milli == 0)
        return false;
    lack.found = count_machines(machines, machine_count, wish, role, WISH_TEST_COUNT);
    if (lack.found >= lack.wanted)
        return false;
    for (enum wish_test test = 0; test < WISH_TEST_COUNT && lack.test == WISH_TEST_COUNT; test++) {
        const size_t found = count_machines(machines, machine_count, wish, role, test);
        if (found < lack.wanted) {
            lack.test = test;
            lack.found = found;
        }
    }
    *out_lack = lack;
    return true;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void append_milli(struct buffer *out, int64_t milli, const char *noun)
{
    buffer_append_format(out, "%.15g %s%s", (double)milli / 1000.0, noun, milli == 1000 ? "" : "s");
}

static void append_bytes(struct buffer *out, int64_t bytes, const char *noun)
{
    char text[UNITS_TEXT_SIZE];
    buffer_append_format(out, "%s of %s", units_format_bytes(bytes, text), noun);
}

/* "offers 64 cores", and of several "offer 64 cores". */
static void append_claim(struct buffer *out, const struct match_wish *wish,
                         const struct match_lack *lack)
{
    const struct job_wishes *wishes = &wish->request->wishes;
    const struct resources wanted = wish_resources(wish, lack->role);
    const bool is_one = lack->found < 2;
    const char *offers = is_one ? "offers " : "offer ", *is = is_one ? "is" : "are";
    char text[UNITS_TEXT_SIZE];
    switch (lack->test) {
    case WISH_TEST_ROLE:
        buffer_append_format(out, "%s %s", is_one ? "takes" : "take",
                             lack->role == MACHINE_ROLE_SERVER ? "a parameter server" : "workers");
        return;
    case WISH_TEST_AUDIENCE:
        buffer_append_format(out, "%s lent to this account", is);
        return;
    case WISH_TEST_SPARE:
        buffer_append_format(out, "%s unsold time away", is_one ? "gives" : "give");
        return;
    case WISH_TEST_RUN_TIME:
        buffer_append_format(out, "%s lent for %s at a time", is,
                             units_format_duration(wish->request->max_run_ms, text));
        return;
    case WISH_TEST_CORES:
        buffer_append_string(out, offers);
        append_milli(out, wanted.cores_milli, "core");
        return;
    case WISH_TEST_RAM:
        buffer_append_string(out, offers);
        append_bytes(out, wanted.ram_bytes, "memory");
        return;
    case WISH_TEST_GPUS:
        buffer_append_string(out, offers);
        append_milli(out, wanted.gpus_milli, "GPU");
        return;
    case WISH_TEST_GPU_MODEL:
        buffer_append_format(out, "%sthe GPU %s", offers, wishes->gpu_model);
        return;
    case WISH_TEST_GPU_RAM:
        buffer_append_format(out, "%sGPUs with %s", offers,
                             units_format_bytes(wishes->gpu_ram_bytes, text));
        return;
    case WISH_TEST_DISK:
        buffer_append_string(out, offers);
        append_bytes(out, wanted.disk_bytes, "disk");
        return;
    case WISH_TEST_BANDWIDTH:
        buffer_append_format(out, "%s%.15g Mbit/s", offers, (double)wanted.bandwidth_kbit / 1000.0);
        return;
    case WISH_TEST_LABELS:
        buffer_append_format(out, "%s the labels %s", is_one ? "has" : "have", wishes->labels);
        return;
    case WISH_TEST_NETWORK:
        buffer_append_format(out, "%s the network \"%s\"", is_one ? "allows" : "allow",
                             offer_network_name(wishes->network));
        return;
    case WISH_TEST_INSTALL:
        buffer_append_format(out, "%s to install \"%s\"", is_one ? "allows" : "allow",
                             offer_install_name(wishes->install));
        return;
    case WISH_TEST_IMAGE:
        buffer_append_format(out, "%s images", is_one ? "allows" : "allow");
        return;
    case WISH_TEST_PROGRAM:
        buffer_append_format(out, "%s more than plain training", is_one ? "takes" : "take");
        return;
    case WISH_TEST_SPEED:
        buffer_append_format(out, "%s as fast as min_speed %.15g", is,
                             (double)wishes->min_speed_milli / 1000.0);
        return;
    case WISH_TEST_RELIABILITY:
        buffer_append_format(out, "%s as reliable as min_reliability %.15g", is,
                             (double)wishes->min_reliability_milli / 1000.0);
        return;
    case WISH_TEST_RTT:
    case WISH_TEST_ONLINE:
    case WISH_TEST_OPEN:
    case WISH_TEST_PRICE:
    case WISH_TEST_ROOM:
    case WISH_TEST_COUNT:
        break;
    }
    buffer_append_format(out, "%s all that it asks for at once", is_one ? "has" : "have");
}

void match_lack_words(const struct match_wish *wish, const struct match_lack *lack,
                      struct buffer *out)
{
    if (lack->found == 0)
        buffer_append_string(out, "no machine here ");
    else
        buffer_append_format(out, "it asks for %zu machines, and only %zu here ", lack->wanted,
                             lack->found);
    append_claim(out, wish, lack);
}
