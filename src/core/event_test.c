/* Events there and back; covers event.c, event_list.c, schema.c. */
#include "core/schema.h"
#include "core/testing_internal.h"

static void assert_round_trip(const struct event *event)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 20);
    buffer_init(&second, 1 << 20);
    struct event decoded;
    event_encode(event, &first);
    ASSERT_OK(event_decode(arena, buffer_text(&first), &decoded, &error));
    assert_int_equal(decoded.kind, event->kind);
    event_encode(&decoded, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
}

static struct span spans[] = {{1, 2}, {3, 4}};
static struct offer_account accounts[] = {{3}};
static const struct offer_terms offer = {.spans = {spans, 2},
                                         .audience = OFFER_AUDIENCE_ACCOUNTS,
                                         .accounts = {accounts, 1},
                                         .labels = TEXT("cuda-12"),
                                         .resources = {.cores_milli = 1},
                                         .roles = MACHINE_ROLE_ALL};
static const struct probe probe = {.resources = {.cores_milli = 1},
                                   .speed_weight_milli = 1000,
                                   .cpu_model = "a \"quoted\" model",
                                   .labels = "avx2"};

TEST(every_kind_of_event_goes_there_and_back)
{
    const struct event examples[] = {
        {.kind = EVENT_SETTINGS_CHANGED, .settings_changed = core_default_settings()},
        {.kind = EVENT_ACCOUNT_OPENED, .account_opened = {3, "ann", ACCOUNT_BLOCK_BIT | 9}},
        {.kind = EVENT_PASSWORD_SET, .password_set = {3, "$argon2id$v=19$m=65536,t=3,p=1$a$b"}},
        {.kind = EVENT_ACCOUNT_FROZEN, .account_frozen = {3, "a stolen card"}},
        {.kind = EVENT_ACCOUNT_UNFROZEN, .account_unfrozen = {3}},
        {.kind = EVENT_ACCOUNT_DELETED, .account_deleted = {3}},
        {.kind = EVENT_ACCOUNT_SEEN, .account_seen = {3}},
        {.kind = EVENT_GROUP_CREATED, .group_created = {7, 3, "lab"}},
        {.kind = EVENT_GROUP_JOINED, .group_joined = {7, 4}},
        {.kind = EVENT_GROUP_LEFT, .group_left = {7, 3, 4}},
        {.kind = EVENT_GRANT_GIVEN, .grant_given = {3, 10000000, 40000000, true}},
        {.kind = EVENT_GRANT_RELEASED, .grant_released = {3, 9, 120}},
        {.kind = EVENT_DORMANCY_ADVANCED, .dormancy_advanced = {3, 3, 1000000}},
        {.kind = EVENT_KARMA_SHARED, .karma_shared = {500000, 1000000, 7}},
        {.kind = EVENT_DAY_BEGAN, .day_began = {20833}},
        {.kind = EVENT_TOKEN_ADDED, .token_added = {4, 3, {1, 2}, 15, 0, "laptop"}},
        {.kind = EVENT_TOKEN_REVOKED, .token_revoked = {4}},
        {.kind = EVENT_CODE_ADDED, .code_added = {5, CODE_KIND_PAGE, 3, {9}, TEST_NOW}},
        {.kind = EVENT_CODE_REMOVED, .code_removed = {5, true}},
        {.kind = EVENT_MACHINE_ENROLLED, .machine_enrolled = {6, 3, "heron", {7}, 1, probe}},
        {.kind = EVENT_MACHINE_PROBED, .machine_probed = {6, probe}},
        {.kind = EVENT_PAIR_MEASURED, .pair_measured = {6, 8, 1200}},
        {.kind = EVENT_MACHINE_STATE_CHANGED,
         .machine_state_changed = {6, MACHINE_STATE_UNREACHABLE}},
        {.kind = EVENT_MACHINE_YIELDED, .machine_yielded = {6, MACHINE_YIELD_PAUSED}},
        {.kind = EVENT_MACHINE_PROVEN, .machine_proven = {6, 3, 250000}},
        {.kind = EVENT_OFFER_SET, .offer_set = {9, 6, offer}},
        {.kind = EVENT_OFFER_PAUSED, .offer_paused = {9, 6, TEST_NOW}},
        {.kind = EVENT_OFFER_RENEWED, .offer_renewed = {9, 6, {spans, 2}}},
        {.kind = EVENT_OFFER_TURNED, .offer_turned = {9, 6, true}},
        {.kind = EVENT_OFFER_WITHDRAWN, .offer_withdrawn = {9, 6}},
        {.kind = EVENT_JOB_SUBMITTED,
         .job_submitted = {7,
                           {.account = 3,
                            .name = "job",
                            .spec = TEXT("{\"a\":\"\\u00e9\xc3\xa9\"}"),
                            .num_nodes = 1,
                            .max_run_ms = 1000,
                            .tick_ms = 1000},
                           5,
                           12}},
        {.kind = EVENT_JOB_DUE, .job_due = {7}},
        {.kind = EVENT_JOB_WAITS, .job_waits = {7, true, false}},
        {.kind = EVENT_JOB_NOTED, .job_noted = {7, "worker 1 is gone"}},
        {.kind = EVENT_JOB_STATE_CHANGED,
         .job_state_changed = {7, JOB_STATE_STOPPING, JOB_STATE_FAILED, "why"}},
        {.kind = EVENT_LEASE_OFFERED,
         .lease_offered = {.lease = 8,
                           .role = LEASE_ROLE_SERVER,
                           .lock = price_lock_flat(price_cold_start()),
                           .max_run_ms = 60000}},
        {.kind = EVENT_LEASE_STARTED, .lease_started = {8, 1}},
        {.kind = EVENT_LEASE_TICKED, .lease_ticked = {8, 7, 1, 2, 3000, 40, 20, 1}},
        {.kind = EVENT_LEASE_STOP_WANTED,
         .lease_stop_wanted = {8, 7, 6, 1, 30000, true, "max", false}},
        {.kind = EVENT_LEASE_ENDED, .lease_ended = {8, 7, 6, 1, LEASE_OUTCOME_LOST, "gone", 137}},
        {.kind = EVENT_LEASE_PROMOTED, .lease_promoted = {9, 7, 2}},
        {.kind = EVENT_JOB_EXTENDED, .job_extended = {7, 90000}},
        {.kind = EVENT_JOB_RESIZED, .job_resized = {7, 4}},
        {.kind = EVENT_LEASE_EXTENDED,
         .lease_extended = {.lease = 8,
                            .max_run_ms = 90000,
                            .lock = price_lock_flat(price_cold_start())}},
        {.kind = EVENT_LEASE_RENEWED,
         .lease_renewed = {.lease = 8,
                           .lock = {.first_slot = 9,
                                    .slot_count = 1,
                                    .from_ms = TEST_NOW,
                                    .before_micro = 12,
                                    .before_rest = 34},
                           .quote_micro = 5}},
        {.kind = EVENT_BOOKING_FORFEITED, .booking_forfeited = {7, 6, 1200}},
        {.kind = EVENT_ENTRY_POSTED,
         .entry_posted = {.sequence = 1, .kind = LEDGER_ENTRY_VOID, .memo = "memo"}},
        {.kind = EVENT_SLOT_CLOSED,
         .slot_closed = {.slot = 83333,
                         .next_slot = 83334,
                         .inputs = {{1, 2, 3, 4}, {5, 6, 7, 8}, {0, 0, 0, 1}, {9, 9, 9, 9}},
                         .board = {{{-1, {1, -1, 2, -2}}, {5, {0}}, {6, {3, 4}}, {7, {0}}}},
                         .price = price_cold_start()}},
        {.kind = EVENT_RULES_CHANGED, .rules_changed = {CORE_RULES_OWN_PAY}},
        {.kind = EVENT_COST_BILLED, .cost_billed = {4, 5, 96000, 40000, "i-1 m5.large"}},
    };
    assert_int_equal(sizeof(examples) / sizeof(*examples), EVENT_KIND_COUNT);
    for (size_t i = 0; i < EVENT_KIND_COUNT; i++) {
        assert_int_equal(examples[i].kind, i);
        assert_round_trip(&examples[i]);
    }
}

TEST(the_encoding_is_canonical_with_the_kind_first)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 4096);
    const struct event event = {
        .kind = EVENT_LEASE_STARTED, .sequence = 12, .time_ms = TEST_NOW, .lease_started = {8, 5}};
    event_encode(&event, &out);
    assert_string_equal(buffer_string(&out),
                        "{\"kind\":\"lease_started\",\"sequence\":12,\"time_ms\":1800000000000,"
                        "\"lease\":8,\"fence\":5}");
}

TEST(what_is_not_an_event_is_refused)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct event event;
    const struct text wrong[] = {
        TEXT(""),
        TEXT("{}"),
        TEXT("{\"kind\":\"lease_started\""),
        TEXT("{\"kind\":\"lease_melted\",\"sequence\":1,\"time_ms\":1}"),
        TEXT("{\"kind\":\"lease_started\",\"sequence\":1,\"time_ms\":1,\"lease\":8}"),
        TEXT("{\"kind\":\"lease_started\",\"sequence\":1,\"time_ms\":1,\"lease\":8,\"fence\":5,"
             "\"more\":1}"),
        TEXT("{\"kind\":\"lease_started\",\"sequence\":1,\"time_ms\":-1,\"lease\":8,\"fence\":5}"),
        TEXT("{\"kind\":\"lease_started\",\"kind\":\"token_revoked\",\"sequence\":1,\"time_ms\":1,"
             "\"lease\":8,\"fence\":5}"),
        TEXT("{ \"kind\":\"lease_started\",\"sequence\":1,\"time_ms\":1,\"lease\":8,\"fence\":5}"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(event_decode(arena, wrong[i], &event, &error), ERROR_INVALID);
}

TEST(names_in_json_are_the_names_of_the_enums)
{
    for (int i = 0; i < CODE_KIND_COUNT; i++)
        assert_string_equal(schema_code_kinds[i], code_kind_name(i));
    for (int i = 0; i < MACHINE_STATE_COUNT; i++)
        assert_string_equal(schema_machine_states[i], machine_state_name(i));
    for (int i = 0; i < MACHINE_YIELD_COUNT; i++)
        assert_string_equal(schema_machine_yields[i], machine_yield_name(i));
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        assert_string_equal(schema_job_states[i], job_state_name(i));
    for (int i = 0; i < LEASE_STATE_COUNT; i++)
        assert_string_equal(schema_lease_states[i], lease_state_name(i));
    for (int i = 0; i < LEASE_OUTCOME_COUNT; i++)
        assert_string_equal(schema_lease_outcomes[i], lease_outcome_name(i));
    for (int i = 0; i < LEASE_ROLE_COUNT; i++)
        assert_string_equal(schema_lease_roles[i], lease_role_name(i));
    for (int i = 0; i < LEDGER_ENTRY_KIND_COUNT; i++)
        assert_string_equal(schema_entry_kinds[i], ledger_entry_kind_name(i));
    assert_null(schema_job_states[JOB_STATE_COUNT]);
    assert_null(schema_entry_kinds[LEDGER_ENTRY_KIND_COUNT]);
}

TEST(a_list_keeps_its_own_copies_of_texts)
{
    struct event_list list;
    event_list_init(&list);
    char spec[] = "{\"a\":1}";
    const struct event event = {.kind = EVENT_JOB_SUBMITTED,
                                .job_submitted = {.request = {.spec = {spec, sizeof(spec) - 1}}}};
    for (int i = 0; i < 100; i++)
        event_list_append(&list, &event);
    memset(spec, 'x', sizeof(spec) - 1);
    assert_int_equal(list.count, 100);
    assert_true(text_equal(list.items[99].job_submitted.request.spec, TEXT("{\"a\":1}")));
    event_list_clear(&list);
    assert_int_equal(list.count, 0);
    event_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_event_goes_there_and_back),
        cmocka_unit_test(the_encoding_is_canonical_with_the_kind_first),
        cmocka_unit_test(what_is_not_an_event_is_refused),
        cmocka_unit_test(names_in_json_are_the_names_of_the_enums),
        cmocka_unit_test(a_list_keeps_its_own_copies_of_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
