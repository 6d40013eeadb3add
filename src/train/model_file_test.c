/* covers model_file.c */
#include "base/file.h"
#include "testing/testing.h"
#include "train/checkpoint.h"
#include "train/model_card.h"
#include "train/model_file.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 7850 };

struct folder {
    char path[48], tensors[80], card[80], checkpoint[80];
    struct model_card described;
    float parameters[COUNT];
};

static void folder_make(struct folder *folder)
{
    struct error error;
    *folder = (struct folder){.path = "/tmp/model_file_test.XXXXXX"};
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->tensors, sizeof(folder->tensors), "%s/model.safetensors", folder->path);
    snprintf(folder->card, sizeof(folder->card), "%s/card.json", folder->path);
    snprintf(folder->checkpoint, sizeof(folder->checkpoint), "%s/checkpoint", folder->path);
    folder->described =
        (struct model_card){.data = "mnist", .policy = "bsp", .mean = 0.1307, .deviation = 0.3081};
    model_spec_default(MODEL_LOGISTIC, &folder->described.spec);
    for (int i = 0; i < COUNT; i++)
        folder->parameters[i] = (float)i / 7;
    ASSERT_OK(model_card_export(folder->path, &folder->described, folder->parameters, &error));
}

static void folder_remove(const struct folder *folder)
{
    unlink(folder->tensors);
    unlink(folder->card);
    unlink(folder->checkpoint);
    assert_int_equal(rmdir(folder->path), 0);
}

static void assert_same(const struct folder *folder, const char *path, double deviation)
{
    struct error error;
    AUTO(model_file) struct model_file *file = NULL;
    ASSERT_OK(model_file_open(path, &file, &error));
    assert_true(model_spec_equal(&file->spec, &folder->described.spec));
    assert_int_equal(file->parameter_count, COUNT);
    assert_memory_equal(file->parameters, folder->parameters, sizeof(folder->parameters));
    assert_true(file->deviation == deviation);
}

TEST(a_model_is_opened_by_its_file_its_folder_or_a_checkpoint)
{
    struct error error;
    static struct folder folder;
    static float velocity[COUNT];
    folder_make(&folder);
    assert_same(&folder, folder.path, 0.3081);
    unlink(folder.card);
    assert_same(&folder, folder.tensors, 0.3081); /* the file alone says it all */
    const struct checkpoint checkpoint = {.spec = folder.described.spec,
                                          .parameter_count = COUNT,
                                          .parameters = folder.parameters,
                                          .velocity = velocity};
    ASSERT_OK(checkpoint_write(folder.checkpoint, &checkpoint, &error));
    assert_same(&folder, folder.checkpoint, 0);
    folder_remove(&folder);
}

TEST(the_card_calls_data_by_their_name_and_prints_numbers_short)
{
    static struct folder folder;
    static const struct {
        const char *data, *told;
    } names[] = {{"mnist", "\"data\":\"mnist\""},
                 {"/houses", "\"data\":\"houses\""},
                 {"pictures/", "\"data\":\"pictures\""},
                 {"peer://x", "\"data\":\"peer://x\""}};
    folder_make(&folder);
    folder.described.train_seconds = (double)INT64_C(24830) / 1000;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct json_writer writer;
        struct buffer json AUTO_BUFFER;
        buffer_init(&json, 1 << 16);
        json_writer_init(&writer, &json);
        folder.described.data = names[i].data;
        model_card_append(&writer, &folder.described);
        assert_non_null(strstr(buffer_string(&json), names[i].told));
        assert_non_null(strstr(buffer_string(&json), "\"train_seconds\":24.83,"));
    }
    folder_remove(&folder);
}

/* As models were left before the file itself said what it is. */
TEST(a_file_without_a_description_needs_its_card)
{
    struct error error;
    static struct folder folder;
    folder_make(&folder);
    struct parameter_table table;
    ASSERT_OK(model_spec_layout(&folder.described.spec, &table, &error));
    ASSERT_OK(safetensors_write(folder.tensors, &table, folder.parameters, NULL, 0, &error));
    assert_same(&folder, folder.tensors, 0.3081);
    unlink(folder.card);
    struct model_file *none = NULL;
    ASSERT_FAILS(model_file_open(folder.tensors, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "does not say what model it is"));
    folder_remove(&folder);
}

TEST(tensors_of_another_model_are_named)
{
    struct error error;
    static struct folder folder;
    folder_make(&folder);
    struct model_spec wider = folder.described.spec;
    wider.width = 30;
    struct parameter_table table;
    ASSERT_OK(model_spec_layout(&wider, &table, &error));
    float *parameters = calloc(table.float_count, sizeof(float));
    ASSERT_OK(safetensors_write(folder.tensors, &table, parameters, NULL, 0, &error));
    struct model_file *none = NULL;
    ASSERT_FAILS(model_file_open(folder.tensors, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "its tensor fc1.weight has another shape"));
    snprintf(table.items[0].name, sizeof(table.items[0].name), "other");
    ASSERT_OK(safetensors_write(folder.tensors, &table, parameters, NULL, 0, &error));
    ASSERT_FAILS(model_file_open(folder.tensors, &none, &error), ERROR_INVALID);
    assert_non_null(strstr(error.message, "it has no tensor fc1.weight"));
    free(parameters);
    folder_remove(&folder);
}

TEST(what_is_no_model_is_told)
{
    struct error error;
    static struct folder folder;
    folder_make(&folder);
    struct model_file *none = NULL;
    const struct text words = TEXT("this is a letter, not a model");
    ASSERT_OK(file_replace(folder.tensors, &words, 1, 0600, &error));
    ASSERT_FAILS(model_file_open(folder.tensors, &none, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "neither a model (safetensors) nor a checkpoint"));
    folder_remove(&folder);
    ASSERT_FAILS(model_file_open(folder.tensors, &none, &error), ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_opened_by_its_file_its_folder_or_a_checkpoint),
        cmocka_unit_test(the_card_calls_data_by_their_name_and_prints_numbers_short),
        cmocka_unit_test(a_file_without_a_description_needs_its_card),
        cmocka_unit_test(tensors_of_another_model_are_named),
        cmocka_unit_test(what_is_no_model_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
