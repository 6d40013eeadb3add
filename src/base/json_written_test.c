#include "base/json_schema.h"
#include "base/random.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

enum animal { ANIMAL_HERON, ANIMAL_OWL };
static const char *const animals[] = {"heron", "owl", NULL};

struct inner {
    int64_t share; /* -5 to 5 */
};

struct outer {
    uint64_t id;
    bool is_paid;
    int64_t amount;
    enum animal animal;
    uint8_t hash[4];
    char name[8];
    struct text memo;
    uint64_t lease;
    int64_t fee;
    struct inner inner;
    int64_t share_count;
    struct inner shares[3];
    double ratio;
    struct json_array parts; /* struct inner */
};

static const struct json_field inner_fields[] = {
    {"share", JSON_I64, offsetof(struct inner, share), .is_required = true, .minimum = -5,
     .maximum = 5},
};
static const struct json_schema inner_schema = JSON_SCHEMA("inner", inner_fields, struct inner);
static const struct json_field outer_fields[] = {
    {"id", JSON_U64, offsetof(struct outer, id), .is_required = true},
    {"is_paid", JSON_BOOL, offsetof(struct outer, is_paid), .is_required = true},
    {"amount", JSON_I64, offsetof(struct outer, amount), .is_required = true},
    {"animal", JSON_CHOICE, offsetof(struct outer, animal), .is_required = true,
     .choices = animals},
    {"hash", JSON_HEX, offsetof(struct outer, hash), .is_required = true, .size_max = 4},
    {"name", JSON_CHARS, offsetof(struct outer, name), .is_required = true, .size_max = 8},
    {"memo", JSON_TEXT, offsetof(struct outer, memo), .is_required = true},
    {"lease", JSON_U64, offsetof(struct outer, lease), .is_zero_omitted = true},
    {JSON_NAME("fee"), .kind = JSON_I64, .offset = offsetof(struct outer, fee), .minimum = -9,
     .maximum = 9, .is_zero_omitted = true},
    {"inner", JSON_OBJECT, offsetof(struct outer, inner), .is_required = true,
     .schema = &inner_schema},
    {"shares", JSON_LIST, offsetof(struct outer, share_count), .is_required = true, .size_max = 3,
     .schema = &inner_schema},
    {"ratio", JSON_DOUBLE, offsetof(struct outer, ratio), .is_required = true},
    {"parts", JSON_ARRAY, offsetof(struct outer, parts), .is_required = true, .size_max = 6,
     .schema = &inner_schema},
};
static const struct json_schema outer_schema = JSON_SCHEMA("outer", outer_fields, struct outer);

static void write_outer(const struct outer *value, struct buffer *out)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_write(&writer, &outer_schema, value);
}

/* Both readers must agree: on failing, and on what they read. */
static int read_both(struct text json, struct outer *out)
{
    struct error slow_error = {0}, fast_error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct outer slow = {0}, fast = {0};
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 4096);
    buffer_init(&second, 4096);
    const int slow_result = json_read(arena, json, &outer_schema, &slow, &slow_error);
    const int fast_result = json_read_written(arena, json, &outer_schema, &fast, &fast_error);
    assert_int_equal(slow_result, fast_result);
    if (slow_result < 0) {
        assert_string_equal(slow_error.message, fast_error.message);
        return -1;
    }
    write_outer(&slow, &first);
    write_outer(&fast, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    *out = fast;
    out->memo = (struct text){0}; /* their arena is gone */
    out->parts = (struct json_array){0};
    return 0;
}

static struct inner example_parts[] = {{1}, {-2}, {3}, {0}, {5}};
static const struct outer example = {.id = 18,
                                     .is_paid = true,
                                     .amount = -1234567890123,
                                     .animal = ANIMAL_OWL,
                                     .hash = {0, 1, 0xfe, 0xff},
                                     .name = "wren",
                                     .memo = {"caf\xc3\xa9", 5},
                                     .share_count = 2,
                                     .shares = {{-4}, {5}},
                                     .fee = 7,
                                     .inner = {.share = -5},
                                     .ratio = -12.5,
                                     .parts = {example_parts, 5}};

TEST(what_was_written_is_read_back)
{
    struct outer value = {0};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 4096);
    write_outer(&example, &json);
    assert_int_equal(read_both(buffer_text(&json), &value), 0);
    assert_true(value.id == 18 && value.is_paid && value.amount == -1234567890123);
    assert_int_equal(value.animal, ANIMAL_OWL);
    assert_memory_equal(value.hash, example.hash, 4);
    assert_string_equal(value.name, "wren");
    assert_int_equal(value.inner.share, -5);
}

TEST(a_zero_that_may_be_left_out_is)
{
    struct outer value = example, read = {0};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 4096);
    write_outer(&value, &json);
    assert_null(strstr(buffer_string(&json), "lease"));
    assert_non_null(strstr(buffer_string(&json), "\"fee\":7,"));
    buffer_clear(&json);
    value.lease = 3;
    value.fee = 0;
    write_outer(&value, &json);
    assert_non_null(strstr(buffer_string(&json), "\"lease\":3,"));
    assert_null(strstr(buffer_string(&json), "fee"));
    assert_int_equal(read_both(buffer_text(&json), &read), 0);
    assert_true(read.lease == 3 && read.fee == 0);
}

TEST(text_with_escapes_and_largest_numbers_is_read_all_the_same)
{
    struct outer value = example, read = {0};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 4096);
    value.memo = TEXT("\"quoted\" \\ \n \x7f");
    value.amount = INT64_MAX - 1;
    value.id = UINT64_MAX - 1;
    write_outer(&value, &json);
    assert_int_equal(read_both(buffer_text(&json), &read), 0);
    assert_true(read.id == UINT64_MAX - 1 && read.amount == INT64_MAX - 1);
}

TEST(numbers_with_a_fraction_are_read_back_to_the_bit)
{
    struct random random;
    random_init(&random, 7);
    for (int i = 0; i < 20000; i++) {
        struct outer value = example, read = {0};
        const uint64_t bits = random_u64(&random);
        if (i % 2)
            memcpy(&value.ratio, &bits, sizeof(bits));
        else
            value.ratio = (double)(int64_t)(bits >> 20) / 1e6;
        if (!isfinite(value.ratio))
            continue;
        struct buffer json AUTO_BUFFER;
        buffer_init(&json, 4096);
        write_outer(&value, &json);
        assert_int_equal(read_both(buffer_text(&json), &read), 0);
        assert_memory_equal(&read.ratio, &value.ratio, sizeof(value.ratio));
    }
}

TEST(any_change_of_the_bytes_is_judged_as_the_other_reader_does)
{
    struct outer value;
    struct random random;
    struct buffer json AUTO_BUFFER;
    random_init(&random, 5);
    buffer_init(&json, 4096);
    write_outer(&example, &json);
    const char bytes[] = "{}[]\":,-0123456789. truefalsnx\\\xc3\x01";
    size_t taken = 0;
    for (int i = 0; i < 20000; i++) {
        char changed[512];
        memcpy(changed, json.data, json.size);
        for (uint64_t edits = 1 + random_below(&random, 2); edits > 0; edits--)
            changed[random_below(&random, json.size)] =
                bytes[random_below(&random, sizeof(bytes) - 1)];
        const size_t size =
            random_below(&random, 10) ? json.size : random_below(&random, json.size);
        taken += read_both((struct text){changed, size}, &value) == 0;
    }
    assert_true(taken > 500 && taken < 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(text_with_escapes_and_largest_numbers_is_read_all_the_same),
        cmocka_unit_test(numbers_with_a_fraction_are_read_back_to_the_bit),
        cmocka_unit_test(any_change_of_the_bytes_is_judged_as_the_other_reader_does),
        cmocka_unit_test(a_zero_that_may_be_left_out_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
