/*
 * Trials: has machines tried with one another when a job looks for some that are near each other
 * (seek.c).
 *
 * Two at a time: those first that are likely to be near, by the address they come from and by how
 * far they are from the market. No two again within AGAIN_MS, no machine more than
 * MACHINE_TRIALS_MAX times a minute, and no more than TRIALS_MAX at once.
 *
 * Both ends report. Neither can claim to be nearer than it is to one that is honest: that one's own
 * clock says when the answer came, and the larger of the two is what counts. One that claims to be
 * farther loses jobs, its own. Two that lie together seem near each other, and get the leases of a
 * job that wished for less: no more than two who lie about their speed.
 *
 * A machine says itself where it may be tried, but others are sent only to the address it is linked
 * from, or to private ones where both are linked from the same: nobody has lenders knock at a third
 * party's door.
 */
#include "base/assert.h"
#include "base/log.h"
#include "market/pair.h"
#include "net/address.h"
#include "server/hub_internal.h"
#include "server/tell.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS INT64_C(1000000)

enum {
    TRIAL_LIMIT_MS = 2000,
    REPORT_MS = 2000, /* for the report to come after that */
    AGAIN_MS = PAIR_FRESH_MS - 60 * 1000,
    MACHINE_TRIALS_MAX = 60, /* a minute */
    TRIALS_MAX = 1024,
    TRIED_MAX = 16384,
};

/* Two machines that are tried, or were. */
struct hub_trial {
    uint64_t id;
    uint64_t machines[2]; /* the lower first */
    int64_t begun_ns;
    bool has_report[2];
    uint32_t rtt_us[2];
    bool is_over;
};

enum { PAIR_KEY_SIZE = 16 };

static struct text pair_key(const struct hub_trial *trial)
{
    _Static_assert(sizeof(trial->machines) == PAIR_KEY_SIZE, "its bytes are the key");
    return (struct text){(const char *)trial->machines, PAIR_KEY_SIZE};
}

/* ---- Where a machine may be tried ------------------------------------------------------------ */

void trial_addresses(struct hub_machine *machine, const struct addresses_message *addresses)
{
    struct error ignored; /* the sizes were checked by the decoder */
    machine->address_count = 0;
    for (uint32_t i = 0; i < addresses->address_count; i++)
        if (text_copy(addresses->addresses[i], machine->addresses[machine->address_count],
                      sizeof(machine->addresses[0]), &ignored) == 0)
            machine->address_count++;
}

/* Whether `asked` is sent to an address that `told` says it has. */
static bool may_tell(const struct hub_machine *asked, const struct hub_machine *told,
                     const char *address)
{
    return tell_may(connection_host(asked->connection), connection_host(told->connection),
                    text_of(address));
}

static bool can_reach(const struct hub_machine *asked, const struct hub_machine *told)
{
    for (uint32_t i = 0; i < told->address_count; i++)
        if (may_tell(asked, told, told->addresses[i]))
            return true;
    return false;
}

static void send_try(struct hub_machine *asked, const struct hub_machine *other,
                     struct lease_message *message)
{
    message->try.address_count = 0;
    for (uint32_t i = 0; i < other->address_count; i++)
        if (may_tell(asked, other, other->addresses[i]))
            message->try.addresses[message->try.address_count++] = text_of(other->addresses[i]);
    hub_send(asked, message);
}

/* ---- One trial ------------------------------------------------------------------------------- */

static bool may_be_tried(struct hub_machine *machine, int64_t now_ns)
{
    if (now_ns - machine->trials_since_ns > 60000 * MS_NS) {
        machine->trials_since_ns = now_ns;
        machine->trial_count = 0;
    }
    return machine->trial_count < MACHINE_TRIALS_MAX;
}

void trial_begin(struct hub *hub, struct hub_machine *low, struct hub_machine *high)
{
    struct hub_trial *trial = calloc(1, sizeof(*trial));
    ASSERT(trial);
    trial->id = ++hub->last_trial;
    trial->machines[0] = low->id;
    trial->machines[1] = high->id;
    trial->begun_ns = hub_now_ns(hub);
    map_put(&hub->trials, trial->id, trial);
    map_put_text(&hub->tried, pair_key(trial), trial);
    low->trial_count++;
    high->trial_count++;
    struct lease_message message = {.type = LEASE_MESSAGE_TRY,
                                    .try = {.trial = trial->id, .limit_ms = TRIAL_LIMIT_MS}};
    randombytes_buf(message.try.key, sizeof(message.try.key));
    randombytes_buf(message.try.ticket, sizeof(message.try.ticket));
    send_try(low, high, &message);
    // NOLINTNEXTLINE(readability-suspicious-call-argument): both are told
    send_try(/* asked= */ high, /* other= */ low, &message);
    sodium_memzero(&message, sizeof(message));
}

static void drop_near(struct hub_machine *machine, size_t at)
{
    machine->near_count--;
    memmove(&machine->near[at], &machine->near[at + 1],
            (machine->near_count - at) * sizeof(machine->near[0]));
}

/* Instead of what was known of the peer; the farthest goes when there are too many. */
static void keep_near(struct hub_machine *machine, const struct hub_near *near)
{
    for (size_t i = machine->near_count; i-- > 0;)
        if (machine->near[i].machine == near->machine ||
            near->measured_ns - machine->near[i].measured_ns > PAIR_FRESH_MS * MS_NS)
            drop_near(machine, i);
    size_t at = 0;
    while (at < machine->near_count && machine->near[at].rtt_us <= near->rtt_us)
        at++;
    if (at == HUB_NEAR_MAX)
        return;
    if (machine->near_count == HUB_NEAR_MAX)
        machine->near_count--;
    memmove(&machine->near[at + 1], &machine->near[at],
            (machine->near_count - at) * sizeof(machine->near[0]));
    machine->near[at] = *near;
    machine->near_count++;
}

/* For people to see; placement goes by what the core has. */
static void keep_both_near(struct hub *hub, const struct hub_trial *trial, int64_t rtt_us)
{
    pthread_mutex_lock(&hub->live_mutex);
    for (int end = 0; end < 2; end++) {
        const struct hub_near near = {trial->machines[!end], rtt_us, hub_now_ns(hub)};
        keep_near(hub_machine(hub, trial->machines[end]), &near);
    }
    pthread_mutex_unlock(&hub->live_mutex);
}

size_t hub_machine_near(struct hub *hub, uint64_t machine, struct hub_near out[HUB_NEAR_MAX])
{
    const int64_t now_ns = hub_now_ns(hub);
    size_t count = 0;
    pthread_mutex_lock(&hub->live_mutex);
    const struct hub_machine *found = map_get(&hub->heard_machines, machine);
    for (size_t i = 0; found && i < found->near_count; i++)
        if (now_ns - found->near[i].measured_ns < PAIR_FRESH_MS * MS_NS)
            out[count++] = found->near[i];
    pthread_mutex_unlock(&hub->live_mutex);
    return count;
}

/* The trial stays among the tried, so that it is not begun again at once. */
static void finish(struct hub *hub, struct hub_trial *trial)
{
    const bool is_reached = trial->has_report[0] && trial->has_report[1] && trial->rtt_us[0] > 0 &&
                            trial->rtt_us[1] > 0;
    const int64_t rtt_us =
        trial->rtt_us[0] > trial->rtt_us[1] ? trial->rtt_us[0] : trial->rtt_us[1];
    trial->is_over = true;
    map_remove(&hub->trials, trial->id);
    log_event(LOG_INFO, "pair_tried", "low=%" PRIu64 " high=%" PRIu64 " rtt_us=%" PRId64,
              trial->machines[0], trial->machines[1], is_reached ? rtt_us : 0);
    if (!is_reached || rtt_us > MACHINE_RTT_US_MAX)
        return;
    keep_both_near(hub, trial, rtt_us);
    hub_command(hub,
                &(struct command){.kind = COMMAND_REPORT_PAIR,
                                  .report_pair = {trial->machines[0], trial->machines[1], rtt_us}},
                NULL);
}

void trial_done(struct hub_machine *machine, const struct tried_message *tried)
{
    struct hub_trial *trial = map_get(&machine->hub->trials, tried->trial);
    if (!trial || (trial->machines[0] != machine->id && trial->machines[1] != machine->id))
        return; /* given up, or none of its own */
    const int end = trial->machines[1] == machine->id;
    trial->has_report[end] = true;
    trial->rtt_us[end] = tried->rtt_us;
    if (tried->rtt_us == 0 || (trial->has_report[0] && trial->has_report[1]))
        finish(machine->hub, trial);
}

/* ---- Whom to try ----------------------------------------------------------------------------- */

struct couple {
    struct hub_machine *low, *high;
    int shared_bits;   /* of the addresses they are linked from */
    int64_t differ_us; /* their round trips to the market */
};

static int compare_couples(const void *left, const void *right)
{
    const struct couple *a = left, *b = right;
    if (a->shared_bits != b->shared_bits)
        return a->shared_bits > b->shared_bits ? -1 : 1;
    if (a->differ_us != b->differ_us)
        return a->differ_us < b->differ_us ? -1 : 1;
    if (a->low->id != b->low->id)
        return a->low->id < b->low->id ? -1 : 1;
    return (a->high->id > b->high->id) - (a->high->id < b->high->id);
}

static struct couple couple_of(struct hub_machine *a, struct hub_machine *b)
{
    const uint32_t differing = tell_host_number(connection_host(a->connection)) ^
                               tell_host_number(connection_host(b->connection));
    const int64_t more_us = a->probe.rtt_us - b->probe.rtt_us;
    return (struct couple){.low = a->id < b->id ? a : b,
                           .high = a->id < b->id ? b : a,
                           .shared_bits = differing ? __builtin_clz(differing) : 32,
                           .differ_us = more_us < 0 ? -more_us : more_us};
}

static bool is_tried(const struct hub *hub, const struct couple *couple)
{
    const struct hub_trial names = {.machines = {couple->low->id, couple->high->id}};
    return map_get_text(&hub->tried, pair_key(&names)) != NULL;
}

/* They come with the likeliest to be near first. */
static void begin_some(struct hub *hub, const struct couple *couples, size_t count)
{
    const int64_t now_ns = hub_now_ns(hub);
    for (size_t i = 0; i < count; i++) {
        if (hub->trials.count >= TRIALS_MAX || hub->tried.count >= TRIED_MAX)
            return;
        if (may_be_tried(couples[i].low, now_ns) && may_be_tried(couples[i].high, now_ns) &&
            (can_reach(couples[i].low, couples[i].high) ||
             can_reach(couples[i].high, couples[i].low)))
            trial_begin(hub, couples[i].low, couples[i].high);
    }
}

/* Whether two of them are being tried with each other. */
static bool is_one_running(const struct hub *hub, const uint64_t *machines, size_t machine_count)
{
    for (size_t i = 0; i < hub->trials.count; i++) {
        const struct hub_trial *trial = hub->trials.entries[i].value;
        int found = 0;
        for (size_t k = 0; k < machine_count; k++)
            found += trial->machines[0] == machines[k] || trial->machines[1] == machines[k];
        if (found == 2)
            return true;
    }
    return false;
}

bool trial_all(struct hub *hub, const uint64_t *machines, size_t machine_count, int64_t max_rtt_us)
{
    struct couple *couples = malloc(machine_count * machine_count / 2 * sizeof(*couples) + 1);
    size_t count = 0;
    ASSERT(couples);
    for (size_t i = 0; i < machine_count; i++)
        for (size_t k = 0; k < i; k++) {
            struct hub_machine *a = hub_machine(hub, machines[i]);
            struct hub_machine *b = hub_machine(hub, machines[k]);
            if (!a || !b || !a->is_welcome || !b->is_welcome)
                continue;
            const bool is_near = a->probe.rtt_us > 0 && b->probe.rtt_us > 0 &&
                                 a->probe.rtt_us + b->probe.rtt_us <= max_rtt_us;
            const struct couple couple = couple_of(a, b);
            if (!is_near && !is_tried(hub, &couple))
                couples[count++] = couple;
        }
    if (count > 1)
        qsort(couples, count, sizeof(*couples), compare_couples);
    begin_some(hub, couples, count);
    free(couples);
    return is_one_running(hub, machines, machine_count);
}

/* ---- Time ------------------------------------------------------------------------------------ */

void trial_check(struct hub *hub)
{
    const int64_t now_ns = hub_now_ns(hub);
    for (size_t i = hub->tried.count; i-- > 0;) {
        struct hub_trial *trial = hub->tried.entries[i].value;
        const int64_t age_ns = now_ns - trial->begun_ns;
        if (!trial->is_over && age_ns > (TRIAL_LIMIT_MS + REPORT_MS) * MS_NS)
            finish(hub, trial);
        if (trial->is_over && age_ns > AGAIN_MS * MS_NS) {
            map_remove_text(&hub->tried, pair_key(trial));
            free(trial);
        }
    }
}

/* It is somewhere else now: what was tried says nothing any more. */
void trial_forget(struct hub_machine *machine)
{
    struct hub *hub = machine->hub;
    machine->address_count = 0;
    pthread_mutex_lock(&hub->live_mutex);
    machine->near_count = 0;
    pthread_mutex_unlock(&hub->live_mutex);
    for (size_t i = hub->tried.count; i-- > 0;) {
        struct hub_trial *trial = hub->tried.entries[i].value;
        if (trial->machines[0] != machine->id && trial->machines[1] != machine->id)
            continue;
        map_remove(&hub->trials, trial->id);
        map_remove_text(&hub->tried, pair_key(trial));
        free(trial);
    }
}

void trials_done(struct hub *hub)
{
    for (size_t i = 0; i < hub->tried.count; i++)
        free(hub->tried.entries[i].value);
    map_done(&hub->tried);
    map_done(&hub->trials);
}
