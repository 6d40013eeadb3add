#include "base/buffer.h"
#include "blob/image_document.h"
#include "testing/testing.h"

#define HEX    "00000000000000000000000000000000000000000000000000000000000000ff"
#define DIGEST "\"sha256:" HEX "\""

TEST(an_index_names_manifests_and_what_they_are_for)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct image_index index;
    ASSERT_OK(image_index_read(
        arena,
        TEXT("{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
             "\"application/vnd.oci.image.index.v1+json\",\"digest\":" DIGEST ",\"size\":7,"
             "\"platform\":{\"architecture\":\"arm64\",\"os\":\"linux\",\"variant\":\"v8\"},"
             "\"annotations\":{\"a\":\"b\"}}]}"),
        &index, &error));
    assert_int_equal(index.manifest_count, 1);
    assert_int_equal(index.manifests[0].digest[31], 0xff);
    assert_int_equal(index.manifests[0].size_bytes, 7);
    assert_true(text_equal(index.manifests[0].platform.architecture, TEXT("arm64")));
    assert_true(image_is_index(index.manifests[0].media_type));
}

TEST(a_manifest_names_its_configuration_and_layers)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct image_manifest manifest;
    ASSERT_OK(image_manifest_read(arena,
                                  TEXT("{\"config\":{\"digest\":" DIGEST ",\"size\":1},\"layers\":"
                                       "[{\"digest\":" DIGEST ",\"size\":2}]}"),
                                  &manifest, &error));
    assert_int_equal(manifest.layer_count, 1);
    assert_int_equal(manifest.layers[0].size_bytes, 2);
}

TEST(a_configuration_comes_back_as_what_is_needed_to_start)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct image_config config, again;
    ASSERT_OK(image_config_read(
        arena,
        TEXT("{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=b\"],"
             "\"Entrypoint\":null,\"Cmd\":[\"sh\"],\"WorkingDir\":\"/w\",\"User\":\"7\"},"
             "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[" DIGEST "]},\"history\":[]}"),
        &config, &error));
    assert_int_equal(config.diff_count, 1);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 4096);
    image_config_write(&config, &json);
    ASSERT_OK(image_start_read(arena, buffer_text(&json), &again, &error));
    assert_int_equal(again.entrypoint.count, 0);
    assert_int_equal(again.cmd.count, 1);
    assert_true(text_equal(((struct text *)again.env.items)[0], TEXT("A=b")));
    assert_true(text_equal(again.working_dir, TEXT("/w")));
    assert_true(text_equal(again.user, TEXT("7")));
}

TEST(docker_save_holds_one_image)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct image_save save;
    ASSERT_OK(image_save_read(arena, TEXT("[{\"Config\":\"c.json\",\"Layers\":[\"a/layer.tar\"]}]"),
                              &save, &error));
    assert_true(text_equal(save.config, TEXT("c.json")));
    assert_int_equal(save.layer_count, 1);
    ASSERT_FAILS(image_save_read(arena, TEXT("[]"), &save, &error), ERROR_INVALID);
    ASSERT_FAILS(image_save_read(arena, TEXT("[]},{\"a\":1"), &save, &error), ERROR_INVALID);
}

TEST(what_is_out_of_bounds_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    struct image_index index;
    struct image_config config;
    static const char *const bad_indexes[] = {
        "",
        "[]",
        "{}",
        "{\"manifests\":[{\"digest\":\"sha512:" HEX "\",\"size\":1}]}",
        "{\"manifests\":[{\"digest\":\"sha256:../../../../etc/passwd\",\"size\":1}]}",
        "{\"manifests\":[{\"digest\":" DIGEST ",\"size\":-1}]}"};
    for (size_t i = 0; i < sizeof(bad_indexes) / sizeof(*bad_indexes); i++)
        ASSERT_FAILS(image_index_read(arena, text_of(bad_indexes[i]), &index, &error),
                     ERROR_INVALID);
    static const char *const bad_starts[] = {"{\"Env\":[\"=b\"]}", "{\"Env\":[\"b\"]}",
                                             "{\"Cmd\":[\"a\\u0000b\"]}", "{\"Cmd\":\"sh\"}",
                                             "{\"WorkingDir\":\"relative\"}"};
    for (size_t i = 0; i < sizeof(bad_starts) / sizeof(*bad_starts); i++)
        ASSERT_FAILS(image_start_read(arena, text_of(bad_starts[i]), &config, &error),
                     ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_names_manifests_and_what_they_are_for),
        cmocka_unit_test(a_manifest_names_its_configuration_and_layers),
        cmocka_unit_test(a_configuration_comes_back_as_what_is_needed_to_start),
        cmocka_unit_test(docker_save_holds_one_image),
        cmocka_unit_test(what_is_out_of_bounds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
