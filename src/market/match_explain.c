/* Match: why a job waits, as rows of what each wish removed, and in words. */
#include "base/assert.h"
#include "base/units.h"
#include "market/match_internal.h"

#include <inttypes.h>

enum { NAMES_MAX = 8 };

/* ---- Rows ------------------------------------------------------------------------------------ */

/* How many tests the best of the machine's offers passes, in order. */
static int tests_passed(const struct machine *machine, const struct match_wish *wish,
                        enum machine_role role)
{
    int most = 0;
    for (size_t i = 0; i < machine->offer_count; i++) {
        int passed = 0;
        while (passed < WISH_TEST_COUNT &&
               wish_passes(wish, role, (enum wish_test)passed, machine->offers[i]))
            passed++;
        most = passed > most ? passed : most;
    }
    return most;
}

static void add_rows(struct match_explanation *explanation, struct machine *const *machines,
                     size_t machine_count, const struct match_wish *wish, enum machine_role role)
{
    size_t stopped_at[WISH_TEST_COUNT + 1] = {0};
    for (size_t i = 0; i < machine_count; i++)
        stopped_at[tests_passed(machines[i], wish, role)]++;
    size_t left = machine_count;
    for (enum wish_test test = 0; test < WISH_TEST_COUNT; test++) {
        left -= stopped_at[test];
        if (wish_has(wish, role, test))
            explanation->rows[explanation->row_count++] = (struct match_row){role, test, left};
    }
}

void match_explain(struct matcher *matcher, struct machine *const *machines, size_t machine_count,
                   const struct match_wish *wish, const struct match_reservation *ahead,
                   enum match_result result, struct match_explanation *out_explanation)
{
    struct match_explanation *explanation = out_explanation;
    *explanation = (struct match_explanation){.result = result, .machine_count = machine_count};
    add_rows(explanation, machines, machine_count, wish, MACHINE_ROLE_WORKER);
    if (wish->request->server.cores_milli > 0)
        add_rows(explanation, machines, machine_count, wish, MACHINE_ROLE_SERVER);
    match_find_nearest(matcher, machines, machine_count, wish, ahead, result, explanation->nearest);
    struct match_lack lack;
    explanation->is_lacking =
        result != MATCH_PLACED &&
        (match_is_lacking(machines, machine_count, wish, MACHINE_ROLE_WORKER, &lack) ||
         match_is_lacking(machines, machine_count, wish, MACHINE_ROLE_SERVER, &lack));
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* "0.25": thousandths without the zeros at the end. */
static void append_milli(struct buffer *out, int64_t milli)
{
    buffer_append_format(out, "%" PRId64, milli / 1000);
    int64_t rest = milli % 1000;
    if (rest == 0)
        return;
    int digits = 3;
    for (; rest % 10 == 0; rest /= 10)
        digits--;
    buffer_append_format(out, ".%0*" PRId64, digits, rest);
}

void match_append_resources(struct buffer *out, struct resources resources)
{
    char bytes[UNITS_TEXT_SIZE];
    append_milli(out, resources.cores_milli);
    buffer_append_string(out, resources.cores_milli == 1000 ? " core" : " cores");
    if (resources.ram_bytes)
        buffer_append_format(out, "%s%s",
                             resources.gpus_milli || resources.disk_bytes ? ", " : " and ",
                             units_format_bytes(resources.ram_bytes, bytes));
    if (resources.gpus_milli) {
        buffer_append_string(out, resources.disk_bytes ? ", " : " and ");
        append_milli(out, resources.gpus_milli);
        buffer_append_string(out, resources.gpus_milli == 1000 ? " GPU" : " GPUs");
    }
    if (resources.disk_bytes)
        buffer_append_format(out, " and %s of disk",
                             units_format_bytes(resources.disk_bytes, bytes));
}

bool match_has_offer(const struct machine *machine, const struct match_wish *wish,
                     enum machine_role role, bool is_free)
{
    for (size_t i = 0; i < machine->offer_count; i++) {
        const struct offer *offer = machine->offers[i];
        if (wish_suits(wish, role, offer) && wish_passes(wish, role, WISH_TEST_PRICE, offer) &&
            (!is_free || wish_passes(wish, role, WISH_TEST_ROOM, offer)))
            return true;
    }
    return false;
}

static bool has_room(const struct machine *machine, const struct match_wish *wish,
                     enum machine_role role)
{
    return match_has_offer(machine, wish, role, /* is_free= */ true);
}

static bool offers_enough(const struct machine *machine, const struct match_wish *wish,
                          enum machine_role role)
{
    return match_has_offer(machine, wish, role, /* is_free= */ false);
}

struct names {
    struct buffer *out;
    size_t count;
};

static void append_name(struct names *names, const char *name)
{
    if (names->count < NAMES_MAX)
        buffer_append_format(names->out, "%s%s", names->count ? ", " : "", name);
    names->count++;
}

static void append_more(const struct names *names)
{
    if (names->count > NAMES_MAX)
        buffer_append_format(names->out, " and %zu more", names->count - NAMES_MAX);
}

static void append_machines(struct machine *const *machines, size_t machine_count,
                            const struct match_wish *wish, enum machine_role role,
                            struct buffer *out)
{
    size_t online = 0, busy = 0;
    for (size_t i = 0; i < machine_count; i++)
        if (offers_enough(machines[i], wish, role)) {
            online++;
            busy += !has_room(machines[i], wish, role);
        }
    if (online == 0) {
        buffer_append_string(out, "; none is online");
        return;
    }
    buffer_append_format(out, "; %zu %s online: ", online, online == 1 ? "is" : "are");
    struct names names = {out, 0};
    for (size_t i = 0; i < machine_count; i++)
        if (offers_enough(machines[i], wish, role))
            append_name(&names, machines[i]->name);
    append_more(&names);
    if (busy == 0)
        return;
    buffer_append_string(out, "; busy: ");
    names.count = 0;
    for (size_t i = 0; i < machine_count; i++)
        if (offers_enough(machines[i], wish, role) && !has_room(machines[i], wish, role))
            append_name(&names, machines[i]->name);
    append_more(&names);
}

/* There is room for the workers and there is room for the server, but not for both at once. */
static bool must_share(struct machine *const *machines, size_t machine_count,
                       const struct match_wish *wish)
{
    int64_t workers = 0;
    if (wish->request->server.cores_milli == 0 || wish_max_rtt_us(wish, MACHINE_ROLE_WORKER) > 0)
        return false;
    for (size_t i = 0; i < machine_count; i++)
        workers += has_room(machines[i], wish, MACHINE_ROLE_WORKER);
    return workers >= wish->request->num_nodes;
}

static void explain_shared(const struct match_wish *wish, struct buffer *out)
{
    buffer_append_string(out, "one machine would have to give both a worker and the parameter "
                              "server, and none that could has the ");
    match_append_resources(out, resources_add(wish->request->worker, wish->request->server));
    buffer_append_string(out, " for both free");
}

static void explain_few(struct machine *const *machines, size_t machine_count,
                        const struct match_wish *wish, enum machine_role role, struct buffer *out)
{
    struct match_lack lack;
    if (match_is_lacking(machines, machine_count, wish, role, &lack)) {
        match_lack_words(wish, &lack, out);
        return;
    }
    if (role == MACHINE_ROLE_SERVER)
        buffer_append_string(out, "needs a machine with the role server offering at least ");
    else
        buffer_append_format(out, "needs %" PRId64 " %s offering at least ",
                             wish->request->num_nodes,
                             wish->request->num_nodes == 1 ? "machine" : "machines");
    match_append_resources(out, wish_resources(wish, role));
    /* Who is too far from whom is said of all that suit in all else. */
    struct job_request request = *wish->request;
    struct match_wish anywhere = *wish;
    request.wishes.max_rtt_us = 0;
    anywhere.request = &request;
    append_machines(machines, machine_count, &anywhere, role, out);
    if (wish_max_rtt_us(wish, role) > 0)
        match_append_far(machines, machine_count, wish, out);
}

void match_explain_words(struct machine *const *machines, size_t machine_count,
                         const struct match_wish *wish, enum match_result result,
                         struct buffer *out)
{
    char credits[UNITS_TEXT_SIZE];
    switch (result) {
    case MATCH_PLACED:
        buffer_append_string(out, "machines are there and it fits its budget");
        return;
    case MATCH_FEW_MACHINES:
        if (must_share(machines, machine_count, wish))
            explain_shared(wish, out);
        else
            explain_few(machines, machine_count, wish, MACHINE_ROLE_WORKER, out);
        return;
    case MATCH_NO_SERVER:
        explain_few(machines, machine_count, wish, MACHINE_ROLE_SERVER, out);
        return;
    case MATCH_OVER_BUDGET:
        buffer_append_format(out,
                             "the machines that fit cost more over its longest run than the %s it "
                             "may spend",
                             units_format_credits(wish->budget_micro, credits));
        return;
    case MATCH_OVER_HOURLY:
        buffer_append_format(out, "the machines that fit cost more than its maximum of %s an hour",
                             units_format_credits(wish->request->max_hourly_micro, credits));
        return;
    case MATCH_RESULT_COUNT:
        break;
    }
    UNREACHABLE("a result of matching without words");
}
