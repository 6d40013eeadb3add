/* covers worker/checkpointer.c */
#include "testing/testing.h"
#include "worker/checkpointer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 7850 };

struct place {
    char folder[64], path[96];
    atomic_int written, failed;
};

static void on_written(void *context, const struct error *reason)
{
    struct place *place = context;
    atomic_fetch_add(reason ? &place->failed : &place->written, 1);
}

static struct checkpointer *open_at(struct place *place)
{
    struct error error;
    struct checkpointer *checkpointer;
    struct checkpointer_options options = {.path = place->path,
                                           .seed = 3,
                                           .parameter_count = COUNT,
                                           .on_written = on_written,
                                           .context = place};
    model_spec_default(MODEL_LOGISTIC, &options.spec);
    ASSERT_OK(checkpointer_open(&options, &checkpointer, &error));
    return checkpointer;
}

static void place_init(struct place *place)
{
    *place = (struct place){.folder = "/tmp/checkpointer_test.XXXXXX"};
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->path, sizeof(place->path), "%s/checkpoint", place->folder);
}

TEST(the_last_one_asked_for_is_on_disk_when_the_checkpointer_is_gone)
{
    static struct place place;
    struct error error;
    place_init(&place);
    struct checkpointer *checkpointer = open_at(&place);
    for (int i = 1; i <= 2; i++) {
        struct checkpoint *next = checkpointer_next(checkpointer, /* is_waiting= */ true);
        next->step = (uint64_t)i;
        next->parameters[COUNT - 1] = (float)i;
        next->velocity[0] = -(float)i;
        checkpointer_write(checkpointer);
    }
    checkpointer_free(checkpointer);
    assert_int_equal(place.written, 2);
    AUTO(checkpoint) struct checkpoint *back = NULL;
    ASSERT_OK(checkpoint_read(place.path, &back, &error));
    assert_int_equal(back->step, 2);
    assert_int_equal(back->seed, 3);
    assert_true(back->parameters[COUNT - 1] == 2);
    assert_true(back->velocity[0] == -2);
    unlink(place.path);
    rmdir(place.folder);
}

TEST(a_disk_that_does_not_take_it_is_told_and_the_next_is_tried)
{
    static struct place place;
    place_init(&place);
    rmdir(place.folder);
    struct checkpointer *checkpointer = open_at(&place);
    for (int i = 0; i < 2; i++) {
        assert_non_null(checkpointer_next(checkpointer, /* is_waiting= */ true));
        checkpointer_write(checkpointer);
    }
    checkpointer_free(checkpointer);
    assert_int_equal(place.failed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_asked_for_is_on_disk_when_the_checkpointer_is_gone),
        cmocka_unit_test(a_disk_that_does_not_take_it_is_told_and_the_next_is_tried),
    };
    return cmocka_run_group_tests_name("checkpointer", tests, NULL, NULL);
}
