#include "peer/chunk_source.h"
#include "testing/testing.h"

enum { CHUNKS = 8, PEERS = 3 };

struct scene {
    enum chunk_state states[CHUNKS];
    enum chunk_holding holdings[PEERS][CHUNKS];
    bool is_free[PEERS];
    struct chunk_view view;
};

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){.is_free = {true, true, true}};
    scene->view = (struct chunk_view){.chunk_count = CHUNKS,
                                      .peer_count = PEERS,
                                      .patience_ms = CHUNK_PATIENCE_MS,
                                      .states = scene->states,
                                      .holdings = scene->holdings[0],
                                      .is_peer_free = scene->is_free};
}

static void assert_choice(const struct scene *scene, size_t chunk, int source)
{
    struct chunk_choice choice = {0};
    assert_true(chunk_source_choose(&scene->view, &choice));
    assert_int_equal(choice.chunk, chunk);
    assert_int_equal(choice.source, source);
}

TEST(alone_the_market_is_asked_at_once_and_for_a_few_at_a_time)
{
    struct scene scene;
    struct chunk_choice choice;
    scene_init(&scene);
    scene.view.peer_count = 0;
    scene.view.first = 6;
    assert_choice(&scene, 6, CHUNK_SOURCE_MARKET);
    scene.states[6] = CHUNK_UNDER_WAY;
    scene.states[7] = CHUNK_RESTS;
    scene.view.market_count = 1;
    assert_choice(&scene, 0, CHUNK_SOURCE_MARKET);
    scene.view.market_count = CHUNK_MARKET_MAX;
    assert_false(chunk_source_choose(&scene.view, &choice));
}

TEST(ranks_that_start_together_begin_at_different_places)
{
    for (uint32_t rank = 0; rank < 4; rank++)
        assert_int_equal(chunk_source_first(rank, 4, CHUNKS), 2 * rank);
    assert_int_equal(chunk_source_first(3, 4, 1), 0);
    assert_int_equal(chunk_source_first(3, 0, CHUNKS), 0);
    assert_int_equal(chunk_source_first(3, 4, 0), 0);
}

TEST(what_a_free_machine_has_comes_from_it)
{
    struct scene scene;
    scene_init(&scene);
    scene.holdings[1][5] = CHUNK_HELD;
    assert_choice(&scene, 5, 1); /* though the market could be asked for others */
    scene.is_free[1] = false;
    assert_choice(&scene, 0, CHUNK_SOURCE_MARKET);
    scene.holdings[2][5] = CHUNK_HELD;
    assert_choice(&scene, 5, 2);
}

TEST(what_others_fetch_is_waited_for_but_not_for_long)
{
    struct scene scene;
    struct chunk_choice choice;
    scene_init(&scene);
    for (size_t i = 0; i < CHUNKS; i++)
        scene.holdings[i % PEERS][i] = i % 2 ? CHUNK_TAKEN : CHUNK_HELD;
    for (size_t i = 0; i < PEERS; i++)
        scene.is_free[i] = false;
    assert_false(chunk_source_choose(&scene.view, &choice));
    scene.holdings[1][4] = CHUNK_UNKNOWN;
    assert_choice(&scene, 4, CHUNK_SOURCE_MARKET);
    scene.holdings[1][4] = CHUNK_HELD;
    scene.view.unmoved_ms = CHUNK_PATIENCE_MS;
    assert_choice(&scene, 0, CHUNK_SOURCE_MARKET);
}

TEST(patience_follows_the_market_within_bounds)
{
    assert_int_equal(chunk_source_patience_ms(0), CHUNK_PATIENCE_MS);
    assert_int_equal(chunk_source_patience_ms(CHUNK_PATIENCE_MS), 2 * CHUNK_PATIENCE_MS);
    assert_int_equal(chunk_source_patience_ms(INT64_MAX), CHUNK_PATIENCE_MS_MAX);
}

TEST(the_first_machine_is_not_asked_for_everything)
{
    struct scene scene;
    scene_init(&scene);
    for (size_t peer = 0; peer < PEERS; peer++)
        for (size_t i = 0; i < CHUNKS; i++)
            scene.holdings[peer][i] = CHUNK_HELD;
    assert_choice(&scene, 0, 0);
    scene.view.first = 1;
    assert_choice(&scene, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_the_market_is_asked_at_once_and_for_a_few_at_a_time),
        cmocka_unit_test(ranks_that_start_together_begin_at_different_places),
        cmocka_unit_test(what_a_free_machine_has_comes_from_it),
        cmocka_unit_test(what_others_fetch_is_waited_for_but_not_for_long),
        cmocka_unit_test(patience_follows_the_market_within_bounds),
        cmocka_unit_test(the_first_machine_is_not_asked_for_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
