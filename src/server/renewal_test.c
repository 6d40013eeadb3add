/* covers projection_offer.c, offer_body.c */
#include "base/schedule.h"
#include "server/offer_body.h"
#include "server/renewal.h"
#include "server/server_internal.h"
#include "server/tables.h"
#include "testing/testing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 2026-11-15 12:00 UTC, a Sunday. */
#define NOW_MS INT64_C(1794744000000)
#define DAY_MS INT64_C(86400000)

/* Read by the core thread as well. */
struct test_clock {
    struct clock clock;
    _Atomic int64_t ms;
};

static int64_t test_utc_ms(const struct clock *clock)
{
    return NOW_MS + atomic_load(&((const struct test_clock *)(const void *)clock)->ms);
}

static int64_t test_monotonic_ns(const struct clock *clock)
{
    return atomic_load(&((const struct test_clock *)(const void *)clock)->ms) * 1000000;
}

struct fixture {
    char dir[64];
    struct test_clock clock;
    struct server server;
    uint64_t owner, machine;
};

/* A command or a look, waited for. */
struct ask {
    struct engine_request request;
    uint64_t offer; /* to look at */
    struct span first, last;
    size_t span_count;
    struct offer_body *body; /* to apply to the machine's defaults */
    struct arena *arena;
    bool is_done, is_failed;
    struct error error;
};

static int prepare(struct engine_request *request, const struct core *core, struct error *error)
{
    struct ask *ask = (struct ask *)request;
    __typeof__(request->command.set_offer) *set = &request->command.set_offer;
    const struct machine *machine = core_machine(core, set->machine);
    set->terms = offer_body_defaults(machine);
    return offer_body_apply(ask->arena, ask->body, core, machine, &set->terms, error);
}

static int decided(struct engine_request *request, const struct core *core,
                   struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct ask *ask = (struct ask *)request;
    if (!ask->offer)
        return 0;
    const struct offer_terms terms = offer_terms(core_offer(core, ask->offer));
    const struct json_array *spans = &terms.spans;
    const struct span *items = spans->items;
    ask->span_count = spans->count;
    ask->first = items[0];
    ask->last = items[spans->count - 1];
    return 0;
}

static void done(struct engine_request *request, const struct error *error)
{
    struct ask *ask = (struct ask *)request;
    ask->is_failed = error != NULL;
    if (error)
        ask->error = *error;
    ask->is_done = true;
}

static void run_ask(struct fixture *fixture, struct ask *ask)
{
    struct error error = {0};
    ask->request.loop = fixture->server.loop;
    ask->request.on_decided = decided;
    ask->request.on_done = done;
    ASSERT_OK(engine_submit(fixture->server.engine, &ask->request, true, &error));
    while (!ask->is_done)
        ASSERT_OK(loop_step(fixture->server.loop, 1000, &error));
}

static uint64_t command(struct fixture *fixture, const struct command *command)
{
    struct ask ask = {.request = {.has_command = true, .command = *command}};
    run_ask(fixture, &ask);
    if (ask.is_failed)
        fail_msg("%s: %s", command_kind_name(command->kind), ask.error.message);
    return ask.request.subject;
}

static struct ask look(struct fixture *fixture, uint64_t offer)
{
    struct ask ask = {.offer = offer};
    run_ask(fixture, &ask);
    return ask;
}

static uint64_t make_offer(struct fixture *fixture, const char *json)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct offer_body body;
    ASSERT_OK(offer_body_read(arena, text_of(json), &body, &error));
    ASSERT_OK(
        offer_body_expand(arena, &body, TEXT(""), clock_utc_ms(fixture->server.clock), &error));
    struct ask ask = {
        .request = {.has_command = true,
                    .prepare = prepare,
                    .command = {.kind = COMMAND_SET_OFFER,
                                .set_offer = {.account = fixture->owner,
                                              .machine = fixture->machine}}},
        .body = &body,
        .arena = arena,
    };
    run_ask(fixture, &ask);
    if (ask.is_failed)
        fail_msg("%s", ask.error.message);
    renewal_wake(fixture->server.renewal);
    return ask.request.subject;
}

static void enrol(struct fixture *fixture)
{
    const struct resources found = {
        .cores_milli = 4000, .ram_bytes = INT64_C(4) << 30, .disk_bytes = INT64_C(10) << 30};
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_ENROL,
                                        .account = fixture->owner,
                                        .expires_ms = NOW_MS + 60000}};
    command(fixture, &code);
    const struct command enrol = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {
            .name = TEXT("heron"),
            .public_key = {1},
            .probe = {.resources = found, .speed_weight_milli = 1000, .cpu_model = "test"},
            .offer = {.resources = found, .roles = MACHINE_ROLE_ALL}}};
    fixture->machine = command(fixture, &enrol);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error error = {0};
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/souk-renewal-XXXXXX");
    if (!mkdtemp(fixture->dir))
        return -1;
    struct server *server = &fixture->server;
    fixture->clock.clock = (struct clock){test_monotonic_ns, test_utc_ms};
    server->clock = &fixture->clock.clock;
    snprintf(server->market_path, sizeof(server->market_path), "%s/market.db", fixture->dir);
    const struct engine_options options = {
        .store = {.location = server->market_path, .schema = &tables_schema},
        .clock = server->clock};
    ASSERT_OK(loop_open(server->clock, &server->loop, &error));
    ASSERT_OK(engine_open(&options, &server->engine, &error));
    ASSERT_OK(store_reader_open(&options.store, &server->reader, &error));
    ASSERT_OK(engine_start(server->engine, &error));
    fixture->owner = command(
        fixture, &(struct command){.kind = COMMAND_OPEN_ACCOUNT, .open_account = {TEXT("owner")}});
    enrol(fixture);
    server->renewal = renewal_new(server);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    engine_stop(server->engine);
    renewal_free(server->renewal);
    loop_free(server->loop);
    store_reader_free(server->reader);
    engine_free(server->engine);
    char command_line[160];
    snprintf(command_line, sizeof(command_line), "rm -rf '%s'", fixture->dir);
    const int result = system(command_line); /* NOLINT: a path this test made */
    free(fixture);
    return result;
}

static void advance_to(struct fixture *fixture, int64_t utc_ms)
{
    atomic_store(&fixture->clock.ms, utc_ms - NOW_MS);
}

/* A turn in which what is due now is begun. */
static void turn(struct fixture *fixture)
{
    struct error error = {0};
    ASSERT_OK(loop_step(fixture->server.loop, 10, &error));
}

static void a_weekly_offer_is_expanded_again_after_four_weeks(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t offer =
        make_offer(fixture, "{\"when\":\"Mon-Fri 18:00-08:00\",\"zone\":\"Europe/Berlin\"}");
    turn(fixture);
    const struct ask made = look(fixture, offer);
    assert_int_equal(made.span_count, 40);
    const int64_t due_ms = made.first.open_ms + 28 * DAY_MS;
    assert_true(due_ms > NOW_MS + 28 * DAY_MS && due_ms < NOW_MS + 35 * DAY_MS);

    advance_to(fixture, due_ms - 1);
    turn(fixture);
    assert_int_equal(look(fixture, offer).last.close_ms, made.last.close_ms);

    advance_to(fixture, due_ms);
    struct ask renewed = look(fixture, offer);
    for (int i = 0; i < 500 && renewed.last.close_ms == made.last.close_ms; i++) {
        turn(fixture);
        renewed = look(fixture, offer);
    }
    assert_true(renewed.last.close_ms > due_ms + 54 * DAY_MS);
    assert_int_equal(renewed.first.open_ms, due_ms);
    /* At least three weeks were left. */
    assert_true(made.last.close_ms - due_ms >= 20 * DAY_MS);
}

static void other_offers_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t once = make_offer(fixture, "{\"when\":\"2027-06-01 08:00 - 2027-06-02 08:00\"}");
    const struct ask made = look(fixture, once);
    advance_to(fixture, NOW_MS + 100 * DAY_MS);
    for (int i = 0; i < 5; i++)
        turn(fixture);
    const struct ask later = look(fixture, once);
    assert_int_equal(later.span_count, 1);
    assert_int_equal(later.first.open_ms, made.first.open_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_weekly_offer_is_expanded_again_after_four_weeks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(other_offers_are_left_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
