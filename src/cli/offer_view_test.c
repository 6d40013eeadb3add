#include "cli/offer_view.h"
#include "testing/testing.h"

static void expect(const char *machine, const char *state, int64_t until_ms, const char *words)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct api_offer offer = {
        .machine_state = text_of(machine), .state = text_of(state), .state_until_ms = until_ms};
    assert_string_equal(offer_view_state(arena, &offer), words);
}

TEST(an_offer_is_open_only_while_its_machine_is_there)
{
    const int64_t until_ms = INT64_C(1794848400000);
    expect("online", "open", 0, "open");
    expect("", "open", 0, "open");
    expect("online", "open", until_ms, "open until 2026-11-16 17:00:00Z");
    expect("offline", "open", until_ms, "offline");
    expect("unreachable", "open", 0, "unreachable");
    expect("offline", "closed", until_ms, "closed until 2026-11-16 17:00:00Z");
    expect("offline", "paused", 0, "paused");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_is_open_only_while_its_machine_is_there),
    };
    return cmocka_run_group_tests_name("offer_view", tests, NULL, NULL);
}
