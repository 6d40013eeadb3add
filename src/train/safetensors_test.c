/* covers safetensors.c, model_card.c */
#include "base/file.h"
#include "testing/testing.h"
#include "train/model_card.h"
#include "train/safetensors.h"

#include <stdlib.h>
#include <string.h>

TEST(an_exported_model_is_read_back_with_its_card)
{
    struct error error;
    char folder[] = "/tmp/safetensors_test.XXXXXX", path[64], card_path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    snprintf(card_path, sizeof(card_path), "%s/card.json", folder);
    struct model_card card = {.data = "fashion-mnist", .policy = "adsp", .test_accuracy = 0.8912};
    model_spec_default(MODEL_LOGISTIC, &card.spec);
    struct parameter_table table;
    ASSERT_OK(model_spec_layout(&card.spec, &table, &error));
    float *parameters = malloc(sizeof(float) * table.float_count);
    assert_non_null(parameters);
    for (size_t i = 0; i < table.float_count; i++)
        parameters[i] = (float)i;
    ASSERT_OK(model_card_export(folder, &card, parameters, &error));

    AUTO(safetensors) struct safetensors *file = NULL;
    ASSERT_OK(safetensors_read(path, &file, &error));
    assert_int_equal(file->tensor_count, 2);
    assert_string_equal(file->tensors[0].name, "fc1.weight");
    assert_int_equal(file->tensors[0].shape[0], 10);
    assert_int_equal(file->tensors[0].shape[1], 784);
    assert_int_equal(file->tensors[1].offset, 7840);
    assert_memory_equal(file->data, parameters, sizeof(float) * table.float_count);
    assert_int_equal(file->metadata_count, 8);
    assert_string_equal(file->metadata[4].key, "test_accuracy");
    assert_string_equal(file->metadata[4].value, "0.8912");

    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 65536);
    ASSERT_OK(file_read(card_path, &buffer, &error));
    assert_non_null(strstr(buffer_string(&buffer), "\"policy\":\"adsp\""));
    assert_non_null(strstr(buffer_string(&buffer), "\"kind\":\"logistic\""));
    free(parameters);
    unlink(path);
    unlink(card_path);
    rmdir(folder);
}

/* A file from its header's JSON and a number of data bytes. */
static size_t make_file(const char *json, size_t data_size, uint8_t *out, size_t out_size)
{
    const size_t header_size = strlen(json);
    assert_true(8 + header_size + data_size <= out_size);
    memset(out, 0, out_size);
    out[0] = (uint8_t)header_size;
    out[1] = (uint8_t)(header_size >> 8);
    memcpy(out + 8, json, header_size);
    return 8 + header_size + data_size;
}

static void assert_refused(const char *json, size_t data_size, enum error_code code)
{
    struct error error;
    struct safetensors *none = NULL;
    static uint8_t bytes[65536];
    const size_t size = make_file(json, data_size, bytes, sizeof(bytes));
    if (safetensors_parse(bytes, size, &none, &error) == 0)
        fail_msg("taken: %s", json);
    assert_int_equal(error.code, code);
}

TEST(files_that_break_the_format_are_refused)
{
    assert_refused("", 0, ERROR_CORRUPT);
    assert_refused("[]", 0, ERROR_CORRUPT);
    assert_refused("{\"a\":1}", 0, ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
                   ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
                   ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
                   ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 4,
                   ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
                   ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
                   ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   4, ERROR_CORRUPT);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
                   ERROR_EXHAUSTED);
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967295,4294967295],"
                   "\"data_offsets\":[0,4]}}",
                   4, ERROR_EXHAUSTED);
    assert_refused("{\"__metadata__\":{\"x\":1}}", 0, ERROR_CORRUPT);
}

TEST(a_header_larger_than_the_file_or_the_maximum_is_refused)
{
    struct error error;
    struct safetensors *none = NULL;
    const uint8_t cut[] = {100, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    ASSERT_FAILS(safetensors_parse(cut, sizeof(cut), &none, &error), ERROR_CORRUPT);
    ASSERT_FAILS(safetensors_parse(cut, 7, &none, &error), ERROR_CORRUPT);
    const uint8_t huge[] = {0, 0, 0, 0, 0, 0, 0, 1, '{', '}'};
    ASSERT_FAILS(safetensors_parse(huge, sizeof(huge), &none, &error), ERROR_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exported_model_is_read_back_with_its_card),
        cmocka_unit_test(files_that_break_the_format_are_refused),
        cmocka_unit_test(a_header_larger_than_the_file_or_the_maximum_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
