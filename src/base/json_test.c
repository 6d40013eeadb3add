/* covers json.c, json_find.c, json_schema.c */
#include "base/json_schema.h"
#include "testing/testing.h"

struct part {
    char name[8];
    int64_t weight;
};

struct thing {
    uint64_t id;
    struct text title;
    bool is_new;
    double ratio;
    uint8_t hash[4];
    int colour;
    struct part main;
    struct json_array parts;
    struct json_array tags;
    struct text extra;
};

static const struct json_field part_fields[] = {
    {"name", JSON_CHARS, offsetof(struct part, name), .is_required = true, .size_max = 8},
    {"weight", JSON_I64, offsetof(struct part, weight), .minimum = -5, .maximum = 5},
};
static const struct json_schema part_schema = JSON_SCHEMA("part", part_fields, struct part);

static const char *const colours[] = {"red", "green", NULL};
static const struct json_field thing_fields[] = {
    {"id", JSON_U64, offsetof(struct thing, id), .is_required = true},
    {"title", JSON_TEXT, offsetof(struct thing, title), .size_max = 10},
    {"is_new", JSON_BOOL, offsetof(struct thing, is_new)},
    {"ratio", JSON_DOUBLE, offsetof(struct thing, ratio)},
    {"hash", JSON_HEX, offsetof(struct thing, hash), .size_max = 4},
    {"colour", JSON_CHOICE, offsetof(struct thing, colour), .choices = colours},
    {"main", JSON_OBJECT, offsetof(struct thing, main), .schema = &part_schema},
    {"parts", JSON_ARRAY, offsetof(struct thing, parts), .size_max = 2, .schema = &part_schema},
    {"tags", JSON_TEXTS, offsetof(struct thing, tags), .size_max = 2},
    {"extra", JSON_ANY, offsetof(struct thing, extra), .size_max = 16},
};
static const struct json_schema thing_schema = JSON_SCHEMA("thing", thing_fields, struct thing);

static void expect_refusal(const char *json, const char *message)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct thing thing = {0};
    ASSERT_FAILS(json_read(arena, text_of(json), &thing_schema, &thing, &error), ERROR_INVALID);
    if (!strstr(error.message, message))
        fail_msg("\"%s\" should say \"%s\" for %s", error.message, message, json);
}

TEST(a_struct_written_is_read_back_the_same)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct text tags[] = {TEXT("new"), TEXT("old")};
    struct part parts[2] = {{"a", 1}, {"b", -2}};
    const struct thing thing = {.id = 1ULL << 63,
                                .title = TEXT("t\"\n\x01é"),
                                .is_new = true,
                                .ratio = 0.1,
                                .hash = {1, 2, 3, 255},
                                .colour = 1,
                                .main = {"main", 5},
                                .parts = {parts, 2},
                                .tags = {tags, 2},
                                .extra = TEXT("[1,{}]")};
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    json_write(&writer, &thing_schema, &thing);

    struct thing back = {0};
    ASSERT_OK(json_read(arena, buffer_text(&buffer), &thing_schema, &back, &error));
    assert_true(back.id == thing.id && back.is_new && back.ratio == 0.1 && back.colour == 1);
    assert_true(text_equal(back.title, thing.title));
    assert_memory_equal(back.hash, thing.hash, 4);
    assert_string_equal(back.main.name, "main");
    assert_int_equal(back.parts.count, 2);
    assert_int_equal(((struct part *)back.parts.items)[1].weight, -2);
    assert_int_equal(back.tags.count, 2);
    assert_true(text_equal(((struct text *)back.tags.items)[1], TEXT("old")));
    assert_true(text_equal(back.extra, TEXT("[1,{}]")));

    struct buffer again AUTO_BUFFER;
    buffer_init(&again, 4096);
    json_writer_init(&writer, &again);
    json_write(&writer, &thing_schema, &back);
    assert_string_equal(buffer_string(&again), buffer_string(&buffer));
}

TEST(what_does_not_fit_is_refused_by_name)
{
    expect_refusal("{}", "thing.id: missing");
    expect_refusal("{\"id\":1,\"color\":1}", "thing.color: unknown field");
    expect_refusal("{\"id\":1,\"id\":1}", "thing.id: there twice");
    expect_refusal("{\"id\":1, \"i\\u0064\" : 2}", "thing: there twice");
    expect_refusal("{\"id\":-1}", "thing.id: out of range");
    expect_refusal("{\"id\":1.5}", "thing.id: whole number expected");
    expect_refusal("{\"id\":99999999999999999999999}", "thing.id: too large");
    expect_refusal("{\"id\":1,\"title\":\"longer than ten\"}", "thing.title: longer than 10");
    expect_refusal("{\"id\":1,\"colour\":\"blue\"}", "not one of red, green");
    expect_refusal("{\"id\":1,\"hash\":\"0102\"}", "thing.hash: 8 lower-case hex");
    expect_refusal("{\"id\":1,\"main\":{\"name\":\"x\",\"weight\":6}}", "thing.main.weight");
    expect_refusal("{\"id\":1,\"parts\":[{\"name\":\"x\"},{}]}", "thing.parts[1].name: missing");
    expect_refusal("{\"id\":1,\"parts\":[{},{},{}]}", "thing.parts: more than 2 items");
    expect_refusal("{\"id\":1,\"tags\":[\"a\",7]}", "thing.tags[1]: text expected");
    expect_refusal("{\"id\":1,\"tags\":[\"a\",\"b\",\"c\"]}", "thing.tags: more than 2 items");
    expect_refusal("{\"id\":1", "ends too early");
    expect_refusal("{\"id\":1}}", "wrong at byte");
    expect_refusal("[[[[[[[[[[[[[[[[[[[[[[", "nesting too deep");
    expect_refusal("7", "object expected");
}

TEST(a_lenient_schema_skips_what_it_does_not_know)
{
    static const struct json_schema lenient =
        JSON_SCHEMA_LENIENT("thing", thing_fields, struct thing);
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct thing thing = {.ratio = 0.5};
    ASSERT_OK(json_read(arena, TEXT("{\"id\":3,\"later\":[1,{}],\"ratio\":null}"), &lenient, &thing,
                        &error));
    assert_int_equal(thing.id, 3);
    assert_true(thing.ratio == 0.5);
    ASSERT_FAILS(json_read(arena, TEXT("{\"later\":1}"), &lenient, &thing, &error), ERROR_INVALID);
}

TEST(the_writer_mends_text_that_is_not_utf8)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 256);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    json_array_begin(&writer);
    json_text(&writer, (struct text){"a\xff"
                                     "b\xc3",
                                     4});
    json_double(&writer, 1.0 / 0.0);
    json_null(&writer);
    json_array_end(&writer);
    assert_string_equal(buffer_string(&buffer), "[\"a\\ufffdb\\ufffd\",null,null]");
}

TEST(keys_and_texts_with_quotes_are_escaped)
{
    (void)state;
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 256);
    struct json_writer writer;
    json_writer_init(&writer, &buffer);
    json_object_begin(&writer);
    json_field_string(&writer, "a\"b", "plain \x7f \n \xc3\xa4\\");
    json_field_i64(&writer, "low", INT64_MIN);
    json_field_u64(&writer, "high", UINT64_MAX);
    json_field_i64(&writer, "nothing", 0);
    json_field_string(&writer, "", "");
    json_object_end(&writer);
    assert_string_equal(buffer_string(&buffer),
                        "{\"a\\\"b\":\"plain \\u007f \\n \xc3\xa4\\\\\","
                        "\"low\":-9223372036854775808,\"high\":18446744073709551615,"
                        "\"nothing\":0,\"\":\"\"}");
}

TEST(literal_keys_are_written_as_all_others)
{
    (void)state;
    const int64_t numbers[] = {0, 9, 10, 99, 100, 12345, -1, -100, INT64_MAX, INT64_MIN};
    struct buffer one AUTO_BUFFER, other AUTO_BUFFER;
    struct json_writer first, second;
    buffer_init(&one, 1000);
    buffer_init(&other, 1000);
    json_writer_init(&first, &one);
    json_writer_init(&second, &other);
    json_object_begin(&first);
    json_object_begin(&second);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        json_keyed_i64(&first, JSON_KEY("number"), numbers[i]);
        json_keyed_text(&first, JSON_KEY("text"), TEXT("a\"b"));
        json_field_i64(&second, "number", numbers[i]);
        json_field_text(&second, "text", TEXT("a\"b"));
    }
    json_object_end(&first);
    json_object_end(&second);
    assert_string_equal(buffer_string(&one), buffer_string(&other));
}

TEST(what_is_written_fits_to_the_byte)
{
    (void)state;
    const char expected[] = "[10,-7]";
    for (size_t size_max = 0; size_max <= sizeof(expected); size_max++) {
        struct buffer buffer AUTO_BUFFER;
        buffer_init(&buffer, size_max);
        struct json_writer writer;
        json_writer_init(&writer, &buffer);
        json_array_begin(&writer);
        json_i64(&writer, 10);
        json_i64(&writer, -7);
        json_array_end(&writer);
        assert_int_equal(buffer.is_overflowed, size_max < sizeof(expected) - 1);
        if (!buffer.is_overflowed)
            assert_memory_equal(buffer.data, expected, sizeof(expected) - 1);
    }
}

TEST(a_text_is_found_by_its_path)
{
    (void)state;
    const struct text json =
        TEXT("{ \"a\": [1, {\"b\": \"no\"}, \"}\\\"]\"], \"sync\": {\"x\": null, "
             "\"policy\": \"adsp\", \"odd\": \"\\n\"}, \"b\": 4}");
    assert_true(
        text_equal(json_find_text(json, (const char *const[]){"sync", "policy"}, 2), TEXT("adsp")));
    static const char *const absent[][2] = {
        {"sync", "odd"}, {"sync", "none"}, {"a", "b"}, {"b", "b"}, {"policy", "policy"}};
    for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
        assert_int_equal(json_find_text(json, absent[i], 2).size, 0);
    /* Cut off anywhere, nothing outside is read: the sanitizers watch. */
    for (size_t size = 0; size < json.size; size++) {
        char *part = malloc(size ? size : 1);
        memcpy(part, json.data, size);
        (void)json_find_text((struct text){part, size}, (const char *const[]){"sync", "odd"}, 2);
        free(part);
    }
}

TEST(keys_are_counted_with_those_given_twice)
{
    (void)state;
    static const struct {
        const char *json;
        size_t count;
        const char *repeated;
    } cases[] = {
        {"[1, \":\", \"a\"]", 0, ""},
        {"{\"a\": {\"a\": \"a\"}, \"b\": [{\"a\": 1}, {\"a\": 2}]}", 5, ""},
        {"{\"a\": 1, \"b\": {\"c\": 1}, \"a\" : 2}", 4, "a"},
        {"[{\"x\": [{\"y\\\"\": 1, \"y\\\"\": 1}]}]", 3, "y\\\""},
        {"{\"a", 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct text repeated;
        assert_int_equal(json_count_keys(text_of(cases[i].json), &repeated), cases[i].count);
        assert_true(text_equal(repeated, text_of(cases[i].repeated)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_struct_written_is_read_back_the_same),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(a_lenient_schema_skips_what_it_does_not_know),
        cmocka_unit_test(the_writer_mends_text_that_is_not_utf8),
        cmocka_unit_test(keys_and_texts_with_quotes_are_escaped),
        cmocka_unit_test(literal_keys_are_written_as_all_others),
        cmocka_unit_test(what_is_written_fits_to_the_byte),
        cmocka_unit_test(a_text_is_found_by_its_path),
        cmocka_unit_test(keys_are_counted_with_those_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
