/* covers tfevents.c */
#include "base/file.h"
#include "testing/testing.h"
#include "tfevents.pb-c.h"
#include "train/tfevents.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(the_checksum_is_castagnolis_masked)
{
    /* RFC 3720, B.4: 32 bytes of 0 are 8a9136aa, of ff 62a8ab43, 0 to 31 46dd794e. */
    static const uint8_t zeros[32];
    uint8_t ones[32], counts[32];
    for (uint8_t i = 0; i < 32; i++) {
        ones[i] = 0xff;
        counts[i] = i;
    }
    const struct {
        const uint8_t *bytes;
        uint32_t crc;
    } known[] = {{zeros, 0x8a9136aa}, {ones, 0x62a8ab43}, {counts, 0x46dd794e}};
    for (size_t i = 0; i < 3; i++) {
        const uint32_t masked = (known[i].crc >> 15 | known[i].crc << 17) + 0xa282ead8u;
        assert_int_equal(tfevents_crc(known[i].bytes, 32), masked);
    }
}

static uint64_t get(const uint8_t *bytes, int size)
{
    uint64_t value = 0;
    for (int i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

/* The event at *offset, whose checksums must be right. */
static Tfevents__Event *read_event(const struct buffer *bytes, size_t *offset)
{
    const uint8_t *record = bytes->data + *offset;
    assert_true(*offset + 16 <= bytes->size);
    const size_t size = get(record, 8);
    assert_int_equal(get(record + 8, 4), tfevents_crc(record, 8));
    assert_true(*offset + 16 + size <= bytes->size);
    assert_int_equal(get(record + 12 + size, 4), tfevents_crc(record + 12, size));
    *offset += 16 + size;
    Tfevents__Event *event = tfevents__event__unpack(NULL, size, record + 12);
    assert_non_null(event);
    return event;
}

TEST(scalars_are_read_back)
{
    struct error error;
    char root[] = "/tmp/tfevents_test.XXXXXX", folder[64];
    assert_non_null(mkdtemp(root));
    snprintf(folder, sizeof(folder), "%s/runs/7", root);
    AUTO(tfevents) struct tfevents *events = NULL;
    ASSERT_OK(tfevents_open(folder, 1700000000500, &events, &error));
    const struct tfevents_scalar scalars[] = {
        {"test/loss", 0.25}, {"test/accuracy", (double)NAN}, {"speed", 1e3}};
    ASSERT_OK(tfevents_write(events, 1700000001000, 42, scalars, 3, &error));
    ASSERT_OK(tfevents_write(events, 1700000001000, 43, scalars + 1, 1, &error)); /* nothing */

    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 16);
    ASSERT_OK(file_read(tfevents_path(events), &bytes, &error));
    size_t offset = 0;
    Tfevents__Event *first = read_event(&bytes, &offset);
    assert_string_equal(first->file_version, "brain.Event:2");
    assert_true(first->wall_time == 1700000000.5);
    Tfevents__Event *second = read_event(&bytes, &offset);
    assert_int_equal(second->step, 42);
    assert_int_equal(second->summary->n_value, 2);
    assert_string_equal(second->summary->value[0]->tag, "test/loss");
    assert_true(second->summary->value[0]->simple_value == 0.25F);
    assert_string_equal(second->summary->value[1]->tag, "speed");
    assert_int_equal(offset, bytes.size);
    tfevents__event__free_unpacked(first, NULL);
    tfevents__event__free_unpacked(second, NULL);

    /* Another run in the same second has a file of its own. */
    AUTO(tfevents) struct tfevents *other = NULL;
    ASSERT_OK(tfevents_open(folder, 1700000000500, &other, &error));
    assert_string_not_equal(tfevents_path(events), tfevents_path(other));
    unlink(tfevents_path(events));
    unlink(tfevents_path(other));
    rmdir(folder);
    snprintf(folder, sizeof(folder), "%s/runs", root);
    rmdir(folder);
    assert_int_equal(rmdir(root), 0);
}

TEST(a_folder_that_cannot_be_made_is_named)
{
    struct error error;
    struct tfevents *none = NULL;
    assert_int_equal(tfevents_open("/dev/null/runs", 0, &none, &error), -1);
    assert_non_null(strstr(error.message, "/dev/null"));
    ASSERT_FAILS(tfevents_open("", 0, &none, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_castagnolis_masked),
        cmocka_unit_test(scalars_are_read_back),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
