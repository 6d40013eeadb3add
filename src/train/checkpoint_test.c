#include "base/file.h"
#include "testing/testing.h"
#include "train/checkpoint.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 7850 };

struct scratch {
    char folder[64];
    char path[80];
    float parameters[COUNT], velocity[COUNT];
    struct checkpoint checkpoint;
};

static void scratch_init(struct scratch *scratch)
{
    snprintf(scratch->folder, sizeof(scratch->folder), "/tmp/checkpoint_test.XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
    snprintf(scratch->path, sizeof(scratch->path), "%s/file", scratch->folder);
    for (int i = 0; i < COUNT; i++) {
        scratch->parameters[i] = (float)i / 3;
        scratch->velocity[i] = (float)-i;
    }
    scratch->checkpoint = (struct checkpoint){.step = 12,
                                              .elapsed_ms = 4200,
                                              .samples = 384,
                                              .epoch = 1,
                                              .position = 7,
                                              .seed = 5,
                                              .stream = 2,
                                              .parameter_count = COUNT,
                                              .parameters = scratch->parameters,
                                              .velocity = scratch->velocity};
    model_spec_default(MODEL_LOGISTIC, &scratch->checkpoint.spec);
    struct error error;
    ASSERT_OK(checkpoint_write(scratch->path, &scratch->checkpoint, &error));
}

static void scratch_done(struct scratch *scratch)
{
    unlink(scratch->path);
    rmdir(scratch->folder);
}

TEST(what_was_written_is_read_back)
{
    struct error error;
    static struct scratch scratch;
    scratch_init(&scratch);
    AUTO(checkpoint) struct checkpoint *back = NULL;
    ASSERT_OK(checkpoint_read(scratch.path, &back, &error));
    assert_true(model_spec_equal(&back->spec, &scratch.checkpoint.spec));
    assert_int_equal(back->step, 12);
    assert_int_equal(back->samples, 384);
    assert_int_equal(back->elapsed_ms, 4200);
    assert_int_equal(back->epoch, 1);
    assert_int_equal(back->position, 7);
    assert_int_equal(back->seed, 5);
    assert_int_equal(back->stream, 2);
    assert_int_equal(back->parameter_count, COUNT);
    assert_memory_equal(back->parameters, scratch.parameters, sizeof(scratch.parameters));
    assert_memory_equal(back->velocity, scratch.velocity, sizeof(scratch.velocity));
    scratch_done(&scratch);
}

TEST(a_checkpoint_cut_or_changed_anywhere_is_corrupt)
{
    struct error error;
    static struct scratch scratch;
    scratch_init(&scratch);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1 << 20);
    ASSERT_OK(file_read(scratch.path, &buffer, &error));
    struct checkpoint *none = NULL;
    const size_t places[] = {0, 9, 13, 20, 100, 5000, buffer.size - 40, buffer.size - 1};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        buffer.data[places[i]] ^= 1;
        ASSERT_FAILS(checkpoint_parse(buffer.data, buffer.size, &none, &error), ERROR_CORRUPT);
        buffer.data[places[i]] ^= 1;
        ASSERT_FAILS(checkpoint_parse(buffer.data, places[i], &none, &error), ERROR_CORRUPT);
    }
    assert_null(none);
    struct text cut = {(const char *)buffer.data, buffer.size / 2};
    ASSERT_OK(file_replace(scratch.path, &cut, 1, 0600, &error));
    ASSERT_FAILS(checkpoint_read(scratch.path, &none, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, scratch.path));
    scratch_done(&scratch);
    ASSERT_FAILS(checkpoint_read(scratch.path, &none, &error), ERROR_NOT_FOUND);
}

TEST(a_good_checkpoint_is_not_overwritten_by_what_is_not_finite)
{
    struct error error;
    static struct scratch scratch;
    scratch_init(&scratch);
    scratch.parameters[COUNT - 1] = NAN;
    ASSERT_FAILS(checkpoint_write(scratch.path, &scratch.checkpoint, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "not finite: the one before is kept"));
    scratch.parameters[COUNT - 1] = 1;
    scratch.velocity[0] = -INFINITY;
    ASSERT_FAILS(checkpoint_write(scratch.path, &scratch.checkpoint, &error), ERROR_INVALID);
    AUTO(checkpoint) struct checkpoint *back = NULL;
    ASSERT_OK(checkpoint_read(scratch.path, &back, &error));
    assert_true(back->parameters[COUNT - 1] == (float)(COUNT - 1) / 3);
    scratch_done(&scratch);
}

/* Anyone can make a file with a checksum that is right. */
TEST(a_checkpoint_with_what_is_not_finite_is_corrupt)
{
    enum { HASH_SIZE = 32 };
    struct error error;
    static struct scratch scratch;
    scratch_init(&scratch);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 1 << 20);
    ASSERT_OK(file_read(scratch.path, &buffer, &error));
    uint8_t *end = buffer.data + buffer.size - HASH_SIZE;
    const size_t places[] = {(size_t)2 * COUNT, COUNT + 1, COUNT, 1}; /* floats before the end */
    const float bad[] = {NAN, INFINITY, -INFINITY, NAN};
    struct checkpoint *none = NULL;
    for (size_t i = 0; i < 4; i++) {
        float kept;
        memcpy(&kept, end - places[i] * sizeof(float), sizeof(float));
        memcpy(end - places[i] * sizeof(float), &bad[i], sizeof(float));
        crypto_generichash(end, HASH_SIZE, buffer.data, buffer.size - HASH_SIZE, NULL, 0);
        ASSERT_FAILS(checkpoint_parse(buffer.data, buffer.size, &none, &error), ERROR_CORRUPT);
        assert_non_null(strstr(error.message, "not finite"));
        memcpy(end - places[i] * sizeof(float), &kept, sizeof(float));
    }
    assert_null(none);
    crypto_generichash(end, HASH_SIZE, buffer.data, buffer.size - HASH_SIZE, NULL, 0);
    AUTO(checkpoint) struct checkpoint *back = NULL;
    ASSERT_OK(checkpoint_parse(buffer.data, buffer.size, &back, &error));
    scratch_done(&scratch);
}

TEST(a_checkpoint_of_another_model_is_named)
{
    struct error error;
    static struct scratch scratch;
    scratch_init(&scratch);
    struct model_spec wanted;
    model_spec_default(MODEL_MLP, &wanted);
    ASSERT_FAILS(checkpoint_refuse_other(&scratch.checkpoint, &wanted, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "logistic of 7850 parameters, not mlp of 235146"));
    scratch_done(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(a_checkpoint_cut_or_changed_anywhere_is_corrupt),
        cmocka_unit_test(a_good_checkpoint_is_not_overwritten_by_what_is_not_finite),
        cmocka_unit_test(a_checkpoint_with_what_is_not_finite_is_corrupt),
        cmocka_unit_test(a_checkpoint_of_another_model_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
