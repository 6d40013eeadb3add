/* covers fleet_member.c, fleet_saved.c */
#include "cloud/fleet_internal.h"
#include "testing/testing.h"

#include <string.h>

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define BEGIN  INT64_C(1790000000000)

static const struct fleet_candidate two[] = {
    {"m5.large", "us-east-1a", 96000},
    {"m5.xlarge", "us-east-1b", 192000},
};

static struct fleet_options options_of(uint64_t seed)
{
    return (struct fleet_options){.instances_max = 20,
                                  .usd_micro_per_hour_max = 2000000,
                                  .hours_max = 24,
                                  .boot_ms = 5 * MINUTE,
                                  .idle_ms = 10 * MINUTE,
                                  .list_ms = 30 * SECOND,
                                  .bill_ms = 10 * MINUTE,
                                  .run = "run-1",
                                  .seed = seed};
}

static struct fleet *new_listed(int64_t now)
{
    const struct fleet_options options = options_of(1);
    struct fleet *fleet = fleet_new(&options);
    struct fleet_action action;
    assert_true(fleet_next(fleet, now, &action));
    assert_int_equal(action.kind, FLEET_LIST);
    fleet_listed(fleet, &action, NULL, 0, now);
    return fleet;
}

static uint64_t order(struct fleet *fleet, uint32_t count, int64_t now)
{
    const struct fleet_wish wish = {.count = count, .candidates = two, .candidate_count = 2};
    struct error error;
    uint64_t id = 0;
    ASSERT_OK(fleet_order(fleet, &wish, now, &id, &error));
    return id;
}

static struct fleet_action next(struct fleet *fleet, enum fleet_action_kind kind, int64_t now)
{
    struct fleet_action action;
    assert_true(fleet_next(fleet, now, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

static void assert_nothing(struct fleet *fleet, int64_t now)
{
    struct fleet_action action;
    assert_false(fleet_next(fleet, now, &action));
}

/* ---- Single cases ---------------------------------------------------------------------------- */

TEST(nothing_starts_before_the_list_was_seen)
{
    const struct fleet_options options = options_of(1);
    AUTO(fleet) struct fleet *fleet = fleet_new(&options);
    order(fleet, 1, BEGIN);
    struct fleet_action list = next(fleet, FLEET_LIST, BEGIN);
    assert_nothing(fleet, BEGIN);
    const struct fleet_listed old = {
        .instance = "i-old", .run = "run-0", .member = 2, .is_alive = true};
    fleet_listed(fleet, &list, &old, 1, BEGIN);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN);
    assert_string_equal(end.instance, "i-old");
    assert_int_equal(fleet_strays_left(fleet), 1);
    fleet_ended(fleet, &end, BEGIN);
    assert_int_equal(fleet_stray_count(fleet), 1);
    assert_int_equal(fleet_strays_left(fleet), 0);
    next(fleet, FLEET_LAUNCH, BEGIN);
}

TEST(a_stray_that_is_absent_is_not_asked_for_again)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const struct fleet_listed old = {
        .instance = "i-old", .run = "run-0", .member = 2, .is_alive = true};
    struct fleet_action list = next(fleet, FLEET_LIST, BEGIN + MINUTE);
    fleet_listed(fleet, &list, &old, 1, BEGIN + MINUTE);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + MINUTE);
    fleet_failed(fleet, &end, FLEET_ABSENT, "no such instance", BEGIN + MINUTE);
    list = next(fleet, FLEET_LIST, BEGIN + HOUR);
    fleet_listed(fleet, &list, NULL, 0, BEGIN + HOUR);
    assert_nothing(fleet, BEGIN + HOUR);
    /* One that a list has is there all the same. */
    list = next(fleet, FLEET_LIST, BEGIN + 2 * HOUR);
    fleet_listed(fleet, &list, &old, 1, BEGIN + 2 * HOUR);
    next(fleet, FLEET_END, BEGIN + 2 * HOUR);
}

TEST(an_instance_lives_until_its_job_ends)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const struct fleet_wish wish = {
        .count = 1, .candidates = two, .candidate_count = 2, .job = 7, .usd_micro_max = 96000};
    struct error error;
    uint64_t id;
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    assert_string_equal(launch.candidate.type, "m5.large");
    assert_int_equal(launch.life_minutes, 57); /* an hour's money, less the margin */
    fleet_launched(fleet, &launch, "i-1", BEGIN);
    assert_nothing(fleet, BEGIN);
    fleet_enrolled(fleet, launch.member, 3, BEGIN + MINUTE);
    assert_int_equal(fleet_find_member(fleet, launch.member)->state, FLEET_READY);
    fleet_job_ended(fleet, 8, BEGIN + MINUTE);
    assert_int_equal(fleet_find_member(fleet, launch.member)->state, FLEET_READY);
    fleet_job_ended(fleet, 7, BEGIN + 2 * MINUTE);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + 2 * MINUTE);
    assert_string_equal(end.instance, "i-1");
    fleet_ended(fleet, &end, BEGIN + 2 * MINUTE);
    next(fleet, FLEET_LIST, BEGIN + 2 * MINUTE);
    assert_true(fleet_find_order(fleet, id)->is_done);
    assert_int_equal(fleet_find_order(fleet, id)->spent_usd_micro, 3200);
    struct fleet_cost cost;
    assert_true(fleet_take_cost(fleet, BEGIN + 2 * MINUTE, &cost));
    assert_int_equal(cost.usd_micro, 3200);
    assert_int_equal(cost.machine, 3);
    assert_false(fleet_take_cost(fleet, BEGIN + HOUR, &cost));
}

TEST(an_order_that_comes_again_by_its_key_is_the_same)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    struct fleet_wish wish = {
        .count = 20, .candidates = two, .candidate_count = 1, .key = {1}, .request = {2}};
    struct error error;
    uint64_t id, again, other;
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN + SECOND, &again, &error)); /* no room for more */
    assert_int_equal(id, again);
    assert_int_equal(fleet_order_count(fleet), 1);
    assert_int_equal(fleet_member_count(fleet), 20);
    wish.request[0] = 3;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &again, &error), ERROR_CONFLICT);
    ASSERT_OK(fleet_stop(fleet, id, "stopped", BEGIN, &error));
    other = order(fleet, 1, BEGIN); /* without a key each is its own */
    assert_int_not_equal(other, order(fleet, 1, BEGIN));
}

TEST(a_budget_of_any_size_gives_no_longer_life_than_the_most)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    struct fleet_wish wish = {.count = 1, .candidates = two, .candidate_count = 1};
    struct error error;
    uint64_t id;
    for (wish.usd_micro_max = INT64_MAX; wish.usd_micro_max > INT64_C(1000000000);
         wish.usd_micro_max /= 3) {
        ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
        const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
        assert_int_equal(launch.life_minutes, 24 * 60);
        fleet_failed(fleet, &launch, FLEET_REFUSED, "no", BEGIN);
    }
}

TEST(no_capacity_leads_to_the_next_candidate_and_then_says_so)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 1, BEGIN);
    struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    const uint32_t attempt = launch.attempt;
    fleet_failed(fleet, &launch, FLEET_CAPACITY, "none there", BEGIN);
    launch = next(fleet, FLEET_LAUNCH, BEGIN);
    assert_string_equal(launch.candidate.type, "m5.xlarge");
    assert_int_not_equal(launch.attempt, attempt);
    fleet_failed(fleet, &launch, FLEET_CAPACITY, "none there either", BEGIN);
    assert_nothing(fleet, BEGIN);
    assert_true(fleet_find_order(fleet, id)->is_done);
    assert_string_equal(fleet_find_order(fleet, id)->reason, "none there either");
    assert_int_equal(fleet_find_order(fleet, id)->spent_usd_micro, 0);
}

TEST(what_is_throttled_is_asked_for_later_by_the_same_token)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 1, BEGIN);
    struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    for (int i = 0; i < 20; i++) {
        const uint32_t attempt = launch.attempt;
        const int64_t now = BEGIN + 2 * MINUTE * i;
        fleet_failed(fleet, &launch, FLEET_THROTTLED, "slow down", now);
        struct fleet_action list;
        while (fleet_next(fleet, now, &list)) {
            assert_int_equal(list.kind, FLEET_LIST);
            fleet_listed(fleet, &list, NULL, 0, now);
        }
        assert_true(fleet_find_member(fleet, launch.member)->pause_ms > now);
        if (fleet_next(fleet, now + 2 * MINUTE, &list) && list.kind == FLEET_LIST) {
            fleet_listed(fleet, &list, NULL, 0, now + 2 * MINUTE);
            list = next(fleet, FLEET_LAUNCH, now + 2 * MINUTE);
        }
        launch = list;
        assert_int_equal(launch.kind, FLEET_LAUNCH);
        assert_int_equal(launch.attempt, attempt);
    }
}

TEST(refused_keys_end_an_order_with_their_reason)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 3, BEGIN);
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &launch, FLEET_REFUSED, "keys are not known", BEGIN);
    assert_nothing(fleet, BEGIN);
    assert_true(fleet_find_order(fleet, id)->is_done);
    assert_string_equal(fleet_find_order(fleet, id)->reason, "keys are not known");
}

TEST(an_open_launch_that_is_stopped_is_looked_for_and_ended)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 1, BEGIN);
    struct error error;
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &launch, FLEET_UNCERTAIN, "no answer", BEGIN);
    ASSERT_OK(fleet_stop(fleet, id, "stopped", BEGIN, &error));
    assert_nothing(fleet, BEGIN + 20 * SECOND);
    const struct fleet_action list = next(fleet, FLEET_LIST, BEGIN + MINUTE);
    struct fleet_listed found = {
        .instance = "i-9", .run = "run-1", .member = launch.member, .is_alive = true};
    fleet_listed(fleet, &list, &found, 1, BEGIN + MINUTE);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + MINUTE);
    assert_string_equal(end.instance, "i-9");
    assert_int_equal(end.member, launch.member);
    fleet_failed(fleet, &end, FLEET_ABSENT, "not yet", BEGIN + MINUTE);
    assert_false(fleet_find_order(fleet, id)->is_done);
    const struct fleet_action again = next(fleet, FLEET_END, BEGIN + 3 * MINUTE);
    fleet_ended(fleet, &again, BEGIN + 3 * MINUTE);
    next(fleet, FLEET_LIST, BEGIN + 3 * MINUTE);
    assert_true(fleet_find_order(fleet, id)->is_done);
}

TEST(a_launch_that_was_not_done_is_gone_once_it_is_stopped)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 2, BEGIN);
    const struct fleet_action first = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &first, FLEET_THROTTLED, "slow down", BEGIN);
    const struct fleet_action second = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_stop_all(fleet, "stopped", BEGIN);
    assert_int_equal(fleet_find_member(fleet, first.member)->state, FLEET_GONE);
    assert_int_equal(fleet_find_member(fleet, second.member)->state, FLEET_ENDING);
    fleet_failed(fleet, &second, FLEET_THROTTLED, "not begun", BEGIN);
    assert_int_equal(fleet_find_member(fleet, second.member)->state, FLEET_GONE);
    assert_int_equal(fleet_living(fleet), 0);
    assert_nothing(fleet, BEGIN);
    assert_int_equal(fleet_order_at(fleet, 0)->spent_usd_micro, 0);
}

TEST(one_taken_back_is_replaced_within_the_budget)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 1, BEGIN);
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &launch, "i-1", BEGIN);
    fleet_enrolled(fleet, launch.member, 3, BEGIN);
    const struct fleet_action list = next(fleet, FLEET_LIST, BEGIN + MINUTE);
    const struct fleet_listed gone = {
        .instance = "i-1", .run = "run-1", .member = launch.member, .is_interrupted = true};
    fleet_listed(fleet, &list, &gone, 1, BEGIN + MINUTE);
    assert_string_equal(fleet_find_member(fleet, launch.member)->reason, "the cloud took it back");
    const struct fleet_action again = next(fleet, FLEET_LAUNCH, BEGIN + MINUTE);
    assert_string_equal(again.candidate.zone, "us-east-1b");
    assert_false(fleet_find_order(fleet, id)->is_done);
}

TEST(idle_and_old_ones_are_ended_busy_ones_are_not)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 2, BEGIN);
    const struct fleet_action first = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &first, "i-1", BEGIN);
    const struct fleet_action second = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &second, "i-2", BEGIN);
    fleet_enrolled(fleet, first.member, 1, BEGIN);
    fleet_enrolled(fleet, second.member, 2, BEGIN);
    fleet_leased(fleet, 1, 1, BEGIN);
    const struct fleet_action end = next(fleet, FLEET_END, BEGIN + 11 * MINUTE);
    assert_string_equal(end.instance, "i-2");
    fleet_ended(fleet, &end, BEGIN + 11 * MINUTE);
    const int64_t late = fleet_find_member(fleet, first.member)->ends_ms;
    const struct fleet_action old = next(fleet, FLEET_END, late);
    assert_string_equal(old.instance, "i-1");
    assert_string_equal(fleet_find_member(fleet, first.member)->reason,
                        "its part of the budget is used up");
}

TEST(limits_are_said_with_what_fits)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    struct error error;
    uint64_t id;
    struct fleet_wish wish = {
        .count = 3, .candidates = two, .candidate_count = 2, .usd_micro_per_hour_max = 200000};
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "at most 2 fit"));
    wish.usd_micro_per_hour_max = 50000;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "price of one"));
    wish.usd_micro_per_hour_max = 0;
    wish.usd_micro_max = 1000;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "5 minutes"));
    wish.usd_micro_max = 0;
    wish.count = 21;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_EXHAUSTED);
    wish.count = 0;
    ASSERT_FAILS(fleet_order(fleet, &wish, BEGIN, &id, &error), ERROR_INVALID);
    ASSERT_FAILS(fleet_stop(fleet, 99, "x", BEGIN, &error), ERROR_NOT_FOUND);
}

/* ---- Kept from one start to the next --------------------------------------------------------- */

static struct fleet *load_saved(struct text saved, int64_t now)
{
    const struct fleet_options options = options_of(2);
    struct fleet *fleet = NULL;
    struct error error;
    ASSERT_OK(fleet_load(&options, saved, now, &fleet, &error));
    return fleet;
}

/* Takes the buffer's place, too. */
static struct fleet *restart(struct fleet *fleet, struct buffer *saved, int64_t now)
{
    buffer_clear(saved);
    fleet_save(fleet, saved);
    fleet_free(fleet);
    return load_saved(buffer_text(saved), now);
}

TEST(an_order_that_was_taken_back_was_never_made)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const struct fleet_wish wish = {
        .count = 2, .candidates = two, .candidate_count = 1, .key = {1}, .request = {2}};
    struct error error;
    uint64_t id, again;
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    fleet_take_back(fleet, id);
    assert_int_equal(fleet_order_count(fleet) + fleet_member_count(fleet), 0);
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &again, &error));
    assert_int_not_equal(again, id);
    next(fleet, FLEET_LAUNCH, BEGIN);
}

/* Else a job that waits on would be given a second, with a budget of its own. */
TEST(an_order_is_known_for_as_long_as_its_job_goes_on)
{
    AUTO(fleet) struct fleet *fleet = new_listed(BEGIN);
    const struct fleet_wish wish = {
        .count = 1, .candidates = two, .candidate_count = 1, .job = 7, .usd_micro_max = 96000};
    struct error error;
    uint64_t id;
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    ASSERT_OK(fleet_stop(fleet, id, "stopped", BEGIN, &error));
    struct fleet_action action;
    assert_false(fleet_next(fleet, BEGIN + SECOND, &action));
    assert_true(fleet_find_order(fleet, id)->is_done);
    order(fleet, 1, BEGIN + 30 * HOUR);
    assert_non_null(fleet_find_order(fleet, id));
    fleet_job_ended(fleet, 7, BEGIN + 31 * HOUR);
    order(fleet, 1, BEGIN + 60 * HOUR);
    assert_null(fleet_find_order(fleet, id));
}

TEST(a_long_reason_is_cut_between_characters)
{
    char reason[FLEET_REASON_SIZE + 8], noted[FLEET_REASON_SIZE];
    memset(reason, 'a', sizeof reason);
    memcpy(reason + FLEET_REASON_SIZE - 2, "\xe2\x82\xac", 4);
    fleet_note(noted, reason);
    assert_int_equal(strlen(noted), FLEET_REASON_SIZE - 2);
    assert_true(text_is_utf8(text_of(noted)));
    fleet_note(noted, "\xff bad \xe2\x82\xac in the middle");
    assert_true(text_is_utf8(text_of(noted)));
    assert_non_null(strstr(noted, "in the middle"));
}

TEST(what_is_saved_is_the_same_when_it_is_read)
{
    struct buffer saved AUTO_BUFFER, again AUTO_BUFFER;
    struct error error;
    struct fleet *fleet = new_listed(BEGIN);
    struct fleet_wish wish = {.count = 2,
                              .candidates = two,
                              .candidate_count = 2,
                              .job = 7,
                              .account = 3,
                              .is_spot = true,
                              .key = {1, 2},
                              .request = {3}};
    uint64_t id, same;
    buffer_init(&saved, FLEET_SAVED_MAX);
    buffer_init(&again, FLEET_SAVED_MAX);
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &id, &error));
    struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &launch, "i-1", BEGIN);
    fleet_enrolled(fleet, launch.member, 9, BEGIN);
    launch = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_failed(fleet, &launch, FLEET_UNCERTAIN, "no \"answer\"", BEGIN);
    fleet = restart(fleet, &saved, BEGIN + HOUR);
    fleet_save(fleet, &again);
    assert_string_equal(buffer_string(&saved), buffer_string(&again));
    ASSERT_OK(fleet_order(fleet, &wish, BEGIN, &same, &error)); /* by its key */
    assert_int_equal(same, id);
    assert_string_equal(fleet_run(fleet), "run-1");
    fleet_free(fleet);
}

TEST(an_order_goes_on_where_it_was)
{
    struct buffer saved AUTO_BUFFER;
    buffer_init(&saved, FLEET_SAVED_MAX);
    struct fleet *fleet = new_listed(BEGIN);
    const uint64_t id = order(fleet, 2, BEGIN);
    const struct fleet_action first = next(fleet, FLEET_LAUNCH, BEGIN);
    fleet_launched(fleet, &first, "i-1", BEGIN);
    fleet_enrolled(fleet, first.member, 9, BEGIN);
    const int64_t ends = fleet_find_member(fleet, first.member)->ends_ms;
    const struct fleet_action second = next(fleet, FLEET_LAUNCH, BEGIN);
    const int64_t back = BEGIN + 2 * HOUR; /* the answer was lost with the market */
    fleet = restart(fleet, &saved, back);
    const struct fleet_action list = next(fleet, FLEET_LIST, back);
    const struct fleet_listed there = {
        .instance = "i-1", .run = "run-1", .member = first.member, .is_alive = true};
    fleet_listed(fleet, &list, &there, 1, back);
    assert_int_equal(fleet_stray_count(fleet), 0);
    assert_int_equal(fleet_find_member(fleet, first.member)->state, FLEET_READY);
    assert_int_equal(fleet_find_member(fleet, first.member)->machine, 9);
    assert_int_equal(fleet_find_member(fleet, first.member)->ends_ms, ends);
    const struct fleet_action again = next(fleet, FLEET_LAUNCH, back);
    assert_int_equal(again.member, second.member);
    assert_int_equal(again.attempt, second.attempt);
    assert_int_equal(again.life_minutes, second.life_minutes); /* as the same token demands */
    fleet_launched(fleet, &again, "i-2", back);
    /* It is idle from now on, and not since before. */
    assert_nothing(fleet, back + 10 * SECOND);
    fleet_leased(fleet, 9, 1, back);
    struct error error;
    ASSERT_OK(fleet_stop(fleet, id, "stopped", back, &error));
    fleet = restart(fleet, &saved, back + SECOND);
    assert_string_equal(next(fleet, FLEET_END, back + SECOND).instance, "i-1");
    assert_string_equal(next(fleet, FLEET_END, back + SECOND).instance, "i-2");
    fleet_free(fleet);
}

TEST(a_launch_that_was_lost_is_not_done_after_its_time)
{
    struct buffer saved AUTO_BUFFER;
    buffer_init(&saved, FLEET_SAVED_MAX);
    struct fleet *fleet = new_listed(BEGIN);
    order(fleet, 1, BEGIN);
    const struct fleet_action launch = next(fleet, FLEET_LAUNCH, BEGIN);
    int64_t now = fleet_find_member(fleet, launch.member)->ends_ms;
    fleet = restart(fleet, &saved, now);
    for (int i = 0; i < 3; i++, now += 5 * MINUTE) {
        const struct fleet_action list = next(fleet, FLEET_LIST, now);
        fleet_listed(fleet, &list, NULL, 0, now);
        assert_nothing(fleet, now);
    }
    assert_int_equal(fleet_find_member(fleet, launch.member)->state, FLEET_GONE);
    assert_int_equal(fleet_order_at(fleet, 0)->spent_usd_micro, 0);
    fleet_free(fleet);
}

static void assert_corrupt(struct text saved)
{
    const struct fleet_options options = options_of(1);
    struct fleet *fleet = NULL;
    struct error error;
    ASSERT_FAILS(fleet_load(&options, saved, BEGIN, &fleet, &error), ERROR_CORRUPT);
    assert_null(fleet);
    assert_true(error.message[0]);
}

TEST(what_is_no_saved_fleet_is_corrupt)
{
    assert_corrupt(TEXT(""));
    assert_corrupt(TEXT("{}"));
    assert_corrupt(
        TEXT("{\"version\":2,\"run\":\"a\",\"last_id\":0,\"orders\":[],\"members\":[]}"));
    assert_corrupt(TEXT("{\"version\":1,\"run\":\"\",\"last_id\":0,\"orders\":[],\"members\":[]}"));
}

/* Whatever becomes of single bytes: it is refused, or a fleet that goes on. */
TEST(a_damaged_one_is_refused_or_sound)
{
    struct buffer saved AUTO_BUFFER;
    struct random random;
    buffer_init(&saved, FLEET_SAVED_MAX);
    random_init(&random, 1);
    AUTO(fleet) struct fleet *whole = new_listed(BEGIN);
    order(whole, 3, BEGIN);
    const struct fleet_action launch = next(whole, FLEET_LAUNCH, BEGIN);
    fleet_launched(whole, &launch, "i-1", BEGIN);
    next(whole, FLEET_LAUNCH, BEGIN);
    fleet_save(whole, &saved);
    const struct fleet_options options = options_of(1);
    int refused = 0;
    for (int i = 0; i < 3000; i++) {
        struct buffer damaged AUTO_BUFFER;
        struct fleet *fleet = NULL;
        struct error error;
        buffer_init(&damaged, FLEET_SAVED_MAX);
        buffer_append(&damaged, saved.data, saved.size);
        for (uint64_t n = 1 + random_below(&random, 3); n > 0; n--)
            damaged.data[random_below(&random, damaged.size)] =
                (uint8_t) "0123456789\",:{}[]truefalse"[random_below(&random, 26)];
        if (fleet_load(&options, buffer_text(&damaged), BEGIN, &fleet, &error) < 0) {
            assert_int_equal(error.code, ERROR_CORRUPT);
            refused++;
            continue;
        }
        for (int64_t now = BEGIN; now < BEGIN + 2 * HOUR; now += 10 * MINUTE) {
            struct fleet_action action;
            for (int k = 0; k < 16 && fleet_next(fleet, now, &action); k++)
                fleet_failed(fleet, &action, FLEET_UNCERTAIN, "a fault", now);
        }
        fleet_free(fleet);
    }
    assert_in_range(refused, 300, 2999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_starts_before_the_list_was_seen),
        cmocka_unit_test(a_stray_that_is_absent_is_not_asked_for_again),
        cmocka_unit_test(an_instance_lives_until_its_job_ends),
        cmocka_unit_test(an_order_that_comes_again_by_its_key_is_the_same),
        cmocka_unit_test(a_budget_of_any_size_gives_no_longer_life_than_the_most),
        cmocka_unit_test(no_capacity_leads_to_the_next_candidate_and_then_says_so),
        cmocka_unit_test(what_is_throttled_is_asked_for_later_by_the_same_token),
        cmocka_unit_test(refused_keys_end_an_order_with_their_reason),
        cmocka_unit_test(an_open_launch_that_is_stopped_is_looked_for_and_ended),
        cmocka_unit_test(a_launch_that_was_not_done_is_gone_once_it_is_stopped),
        cmocka_unit_test(one_taken_back_is_replaced_within_the_budget),
        cmocka_unit_test(idle_and_old_ones_are_ended_busy_ones_are_not),
        cmocka_unit_test(limits_are_said_with_what_fits),
        cmocka_unit_test(an_order_that_was_taken_back_was_never_made),
        cmocka_unit_test(an_order_is_known_for_as_long_as_its_job_goes_on),
        cmocka_unit_test(a_long_reason_is_cut_between_characters),
        cmocka_unit_test(what_is_saved_is_the_same_when_it_is_read),
        cmocka_unit_test(an_order_goes_on_where_it_was),
        cmocka_unit_test(a_launch_that_was_lost_is_not_done_after_its_time),
        cmocka_unit_test(what_is_no_saved_fleet_is_corrupt),
        cmocka_unit_test(a_damaged_one_is_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
