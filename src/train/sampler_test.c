#include "base/file.h"
#include "testing/testing.h"
#include "train/sampler.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Zeros, in a file that is larger than what is kept of it. */
struct scratch {
    char folder[64], images[80], labels[80];
    struct dataset *dataset;
};

static void put_header(const char *path, const uint8_t *header, size_t size, off_t whole)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, header, size) == (ssize_t)size);
    assert_int_equal(ftruncate(fd, (off_t)size + whole), 0);
}

static void scratch_init(struct scratch *scratch, uint32_t count, uint32_t side)
{
    struct error error;
    const uint8_t a = (uint8_t)(count >> 24), b = (uint8_t)(count >> 16);
    const uint8_t c = (uint8_t)(count >> 8), d = (uint8_t)count;
    const uint8_t images[] = {
        0, 0, 8, 3, a, b, c, d, 0, 0, 0, (uint8_t)side, 0, 0, 0, (uint8_t)side};
    const uint8_t labels[] = {0, 0, 8, 1, a, b, c, d};
    snprintf(scratch->folder, sizeof(scratch->folder), "/var/tmp/sampler_test.XXXXXX");
    assert_non_null(mkdtemp(scratch->folder));
    snprintf(scratch->images, sizeof(scratch->images), "%s/images", scratch->folder);
    snprintf(scratch->labels, sizeof(scratch->labels), "%s/labels", scratch->folder);
    put_header(scratch->images, images, sizeof(images), (off_t)count * side * side);
    put_header(scratch->labels, labels, sizeof(labels), count);
    const struct dataset_options options = {.images_path = scratch->images,
                                            .labels_path = scratch->labels,
                                            .classes = 2,
                                            .deviation = 1};
    ASSERT_OK(dataset_open(&options, &scratch->dataset, &error));
}

static void scratch_done(struct scratch *scratch)
{
    dataset_free(scratch->dataset);
    unlink(scratch->images);
    unlink(scratch->labels);
    rmdir(scratch->folder);
}

TEST(an_epoch_draws_each_record_once_in_a_seeded_order)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch, 3, 2);
    struct sampler sampler;
    ASSERT_OK(sampler_init(&sampler, scratch.dataset, 1, 2, 5, &error));
    uint32_t drawn[20];
    for (int i = 0; i < 20; i += 5)
        sampler_next(&sampler, drawn + i, 5); /* runs over the ends of epochs */
    bool is_reversed = false, is_forward = false;
    for (int i = 0; i < 20; i += 2) {
        assert_int_equal(drawn[i] + drawn[i + 1], 3); /* records 1 and 2, once each */
        is_reversed |= drawn[i] == 2;
        is_forward |= drawn[i] == 1;
    }
    assert_true(is_reversed && is_forward);
    ASSERT_OK(sampler_seek(&sampler, 3, 1, &error));
    uint32_t again[5];
    sampler_next(&sampler, again, 5);
    assert_memory_equal(again, drawn + 7, sizeof(again));
    ASSERT_FAILS(sampler_seek(&sampler, 0, 3, &error), ERROR_INVALID);
    sampler_done(&sampler);
    ASSERT_FAILS(sampler_init(&sampler, scratch.dataset, 2, 2, 5, &error), ERROR_INVALID);
    ASSERT_FAILS(sampler_init(&sampler, scratch.dataset, 0, 0, 5, &error), ERROR_INVALID);
    scratch_done(&scratch);
}

enum { COUNT = 12345, FIRST = 45, SIDE = 128, SHARD = COUNT - FIRST }; /* 193 MiB */

static void check_epoch(const uint32_t *drawn)
{
    uint8_t *seen = calloc(COUNT, 1);
    assert_non_null(seen);
    for (uint32_t i = 0; i < SHARD; i++) {
        assert_true(drawn[i] >= FIRST && drawn[i] < COUNT && !seen[drawn[i]]);
        seen[drawn[i]] = 1;
    }
    free(seen);
}

TEST(a_large_file_is_drawn_in_windows_of_blocks)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch, COUNT, SIDE);
    struct sampler sampler, other;
    ASSERT_OK(sampler_init(&sampler, scratch.dataset, FIRST, SHARD, 9, &error));
    uint32_t *drawn = calloc((size_t)2 * SHARD, sizeof(*drawn)), some[100];
    assert_non_null(drawn);
    for (uint32_t i = 0; i < 2 * SHARD; i += 100)
        sampler_next(&sampler, drawn + i, 100);
    check_epoch(drawn);
    check_epoch(drawn + SHARD);
    assert_true(memcmp(drawn, drawn + SHARD, sizeof(*drawn) * SHARD) != 0);

    /* The records at hand at any time lie in a window's worth of blocks: 64 MiB in 256 KiB. */
    const uint32_t block = SAMPLER_BLOCK_BYTES / ((size_t)SIDE * SIDE);
    const uint32_t window = SAMPLER_WINDOW_BYTES / SAMPLER_BLOCK_BYTES;
    uint8_t blocks[COUNT / 16 + 1] = {0};
    uint32_t different = 0, neighbours = 0;
    for (uint32_t i = 0; i < window * block; i++) {
        different += !blocks[(drawn[i] - FIRST) / block];
        blocks[(drawn[i] - FIRST) / block] = 1;
        neighbours += i > 0 && drawn[i] == drawn[i - 1] + 1;
    }
    assert_true(different <= window + 1);
    assert_true(neighbours < 100); /* yet they are well mixed */

    /* The same seed gives the same order, from any place on. */
    ASSERT_OK(sampler_init(&other, scratch.dataset, FIRST, SHARD, 9, &error));
    const uint32_t places[] = {0, 4096, 4097, 9000, SHARD - 100};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        ASSERT_OK(sampler_seek(&other, 1, places[i], &error));
        sampler_next(&other, some, 100);
        assert_memory_equal(some, drawn + SHARD + places[i], sizeof(some));
    }
    sampler_done(&other);
    sampler_done(&sampler);
    free(drawn);
    scratch_done(&scratch);
}

/* Of this process that RLIMIT_DATA counts: the sixth figure of statm, in pages. */
static rlim_t own_bytes(void)
{
    char line[128], *at = line;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_true(file && fgets(line, sizeof(line), file));
    fclose(file);
    for (int i = 0; i < 6; i++)
        pages = strtoul(at, &at, 10);
    return (rlim_t)pages * 4096;
}

/* Private memory is bounded; what is mapped from a file the system may put aside. */
TEST(a_file_larger_than_memory_is_drawn_from)
{
    struct error error;
    struct scratch scratch;
    struct rlimit before, bounded;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    bounded = (struct rlimit){own_bytes() + ((rlim_t)32 << 20), before.rlim_max};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_int_equal(setrlimit(RLIMIT_DATA, &bounded), 0);
#else
    (void)bounded; /* the sanitizer's own memory is in the way */
#endif
    scratch_init(&scratch, COUNT, SIDE);
    struct sampler sampler;
    ASSERT_OK(sampler_init(&sampler, scratch.dataset, 0, COUNT, 9, &error));
    float *images = malloc(sizeof(float) * 64 * SIDE * SIDE);
    assert_non_null(images);
    for (uint32_t i = 0; i < COUNT; i += 64) {
        uint32_t indices[64];
        int32_t labels[64];
        sampler_next(&sampler, indices, 64);
        dataset_gather(scratch.dataset, indices, 64, images, labels);
        assert_true(images[0] == 0 && labels[63] == 0);
    }
    free(images);
    sampler_done(&sampler);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    scratch_done(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_draws_each_record_once_in_a_seeded_order),
        cmocka_unit_test(a_large_file_is_drawn_in_windows_of_blocks),
        cmocka_unit_test(a_file_larger_than_memory_is_drawn_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
