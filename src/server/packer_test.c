#include "server/packer.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <string.h>

static struct text job_text(struct buffer *out, const char *word, uint64_t id)
{
    buffer_clear(out);
    for (int i = 0; i < 20; i++)
        buffer_append_format(out, "{\"%s_%d\":%" PRIu64 ",\"state\":\"%s\"}", word, i, id, word);
    return buffer_text(out);
}

static void assert_reads(const struct packed *packed, struct packer *packer, struct text text)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 20);
    packed_read(packed, packer, &out);
    assert_true(text_equal(buffer_text(&out), text));
}

TEST(texts_come_back_as_they_were_and_take_little_room)
{
    (void)state;
    AUTO(packer) struct packer *packer = packer_new();
    struct packed *all[100];
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 1 << 16);
    for (uint64_t i = 0; i < 100; i++) {
        all[i] = packed_new(packer, job_text(&text, "job", 1000 + i));
        assert_in_range(packed_memory(all[i]), 1, text.size / 4);
    }
    for (uint64_t i = 0; i < 100; i++) {
        assert_reads(all[i], packer, job_text(&text, "job", 1000 + i));
        packed_free(all[i]);
    }
}

TEST(an_empty_text_and_one_without_any_order_come_back_too)
{
    (void)state;
    AUTO(packer) struct packer *packer = packer_new();
    char noise[3000];
    uint32_t number = 1;
    for (size_t i = 0; i < sizeof(noise); i++) {
        number = number * 1664525 + 1013904223;
        noise[i] = (char)(number >> 24);
    }
    struct packed *empty = packed_new(packer, TEXT(""));
    struct packed *noisy = packed_new(packer, (struct text){noise, sizeof(noise)});
    assert_reads(empty, packer, TEXT(""));
    assert_reads(noisy, packer, (struct text){noise, sizeof(noise)});
    packed_free(empty);
    packed_free(noisy);
}

/* Texts without inner repetition: only the pattern makes them small. */
static struct text unlike_text(struct buffer *out, uint32_t seed, uint32_t id)
{
    buffer_clear(out);
    uint32_t number = seed;
    for (int i = 0; i < 400; i++) {
        number = number * 1664525 + 1013904223;
        buffer_append_byte(out, (uint8_t)(number >> 24));
    }
    buffer_append_format(out, "%" PRIu32, id);
    return buffer_text(out);
}

TEST(another_pattern_is_taken_when_texts_have_changed)
{
    (void)state;
    AUTO(packer) struct packer *packer = packer_new();
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 1 << 16);
    struct packed *old = packed_new(packer, unlike_text(&text, 1, 1));
    size_t first = 0, last = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct packed *packed = packed_new(packer, unlike_text(&text, 2, i));
        assert_reads(packed, packer, buffer_text(&text));
        first = i == 0 ? packed_memory(packed) : first;
        last = packed_memory(packed);
        packed_free(packed);
    }
    assert_in_range(last, 1, first / 4);
    assert_reads(old, packer, unlike_text(&text, 1, 1));
    packed_free(old);
}

TEST(a_text_longer_than_its_reader_takes_overflows)
{
    (void)state;
    AUTO(packer) struct packer *packer = packer_new();
    struct buffer text AUTO_BUFFER;
    struct buffer out AUTO_BUFFER;
    buffer_init(&text, 1 << 16);
    buffer_init(&out, 16);
    struct packed *packed = packed_new(packer, job_text(&text, "job", 7));
    packed_read(packed, packer, &out);
    assert_true(out.is_overflowed);
    packed_free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back_as_they_were_and_take_little_room),
        cmocka_unit_test(an_empty_text_and_one_without_any_order_come_back_too),
        cmocka_unit_test(another_pattern_is_taken_when_texts_have_changed),
        cmocka_unit_test(a_text_longer_than_its_reader_takes_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
