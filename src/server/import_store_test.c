#include "base/file.h"
#include "blob/pack.h"
#include "runtime/mount_index.h"
#include "sandbox/folder.h"
#include "server/import_store.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX (UINT64_C(1) << 20)

static struct error error;

/* A store, and a folder as the reader leaves it. */
struct scene {
    char folder[64], path[128];
    struct blob_store *blobs;
    struct arena *arena;
    struct import_product product;
    struct import_progress progress;
};

static const char *path_of(struct scene *scene, const char *name)
{
    snprintf(scene->path, sizeof(scene->path), "%s/%s", scene->folder, name);
    return scene->path;
}

static void put(struct scene *scene, const char *name, struct text bytes)
{
    ASSERT_OK(file_replace(path_of(scene, name), &bytes, 1, 0644, &error));
}

static const char job[] = "{\"train\":{\"model\":\"logistic\",\"data\":\"rows.csv\",\"features\":2,"
                          "\"classes\":2},\"sync\":{}}";

static void put_all(struct scene *scene)
{
    put(scene, "train-images", TEXT("\0\0\x08\x02\0\0\0\3\0\0\0\2abcdef"));
    put(scene, "train-labels", TEXT("\0\0\x08\x01\0\0\0\3\0\1\0"));
    put(scene, "test-images", TEXT("\0\0\x08\x02\0\0\0\1\0\0\0\2gh"));
    put(scene, "test-labels", TEXT("\0\0\x08\x01\0\0\0\1\1"));
    put(scene, "columns",
        TEXT("{\"form\":\"bytes\",\"target\":\"class\",\"classes\":[\"no\",\"yes\"]}"));
    put(scene, "job.json", text_of(job));
}

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){.arena = arena_new(0)};
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/souk-import-store-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    char blobs[128];
    snprintf(blobs, sizeof(blobs), "%s/blobs", scene->folder);
    const struct blob_store_options options = {.folder = blobs};
    ASSERT_OK(blob_store_open(&options, &scene->blobs, &error));
    put_all(scene);
}

static void scene_done(struct scene *scene)
{
    import_product_done(&scene->product);
    blob_store_free(scene->blobs);
    arena_free(scene->arena);
    ASSERT_OK(folder_remove(scene->folder, &error));
}
#define AUTO_SCENE __attribute__((cleanup(scene_done)))

static int read_product(struct scene *scene, uint64_t bytes_max)
{
    import_product_done(&scene->product);
    return import_product_read(&scene->product, scene->folder, /* is_peer= */ false, bytes_max,
                               &error);
}

TEST(what_was_read_becomes_the_inputs_of_a_job)
{
    AUTO_SCENE struct scene scene;
    scene_init(&scene);
    const struct import_product *product = &scene.product;
    ASSERT_OK(read_product(&scene, BYTES_MAX));
    assert_int_equal(product->input_first, 0);
    assert_int_equal(product->inputs[0].records, 3);
    assert_int_equal(product->inputs[2].records, 1);
    assert_int_equal(product->train.features, 2);
    assert_int_equal(product->classes.count, 2);
    assert_true(text_equal(product->classes.items[1].name, TEXT("yes")));
    assert_int_equal(product->classes.items[0].records, 2);
    assert_int_equal(product->classes.items[1].records, 2);
    assert_int_equal(product->chunk_count, 2 * JOB_PARTS_MAX);
    assert_int_equal(blob_store_count(scene.blobs), 0);
    ASSERT_OK(import_product_keep(product, scene.blobs, &scene.progress, &error));
    for (size_t i = 0; i < product->chunk_count; i++) {
        uint64_t bytes = 0;
        ASSERT_OK(blob_store_size(scene.blobs, &product->chunks[i].hash, &bytes, &error));
        assert_int_equal(bytes, product->chunks[i].size_bytes);
    }
    struct blob_hash hash;
    struct manifest manifest;
    memcpy(hash.bytes, product->inputs[0].manifest, sizeof(hash.bytes));
    ASSERT_OK(manifest_get(scene.arena, scene.blobs, &hash, &manifest, &error));
    assert_int_equal(manifest.record_bytes, 2);
}

TEST(of_data_at_lenders_only_the_test_is_taken)
{
    AUTO_SCENE struct scene scene;
    scene_init(&scene);
    const struct import_product *product = &scene.product;
    import_product_done(&scene.product);
    ASSERT_OK(
        import_product_read(&scene.product, scene.folder, /* is_peer= */ true, BYTES_MAX, &error));
    assert_int_equal(product->input_first, DATASET_TEST_IMAGES);
    assert_int_equal(product->inputs[DATASET_TRAIN_IMAGES].records, 0);
    assert_int_equal(product->inputs[DATASET_TEST_IMAGES].records, 1);
    assert_int_equal(product->inputs[DATASET_PART_COUNT].split, JOB_SPLIT_ALL);
    assert_int_equal(product->chunk_count, 2 * 3);
    ASSERT_OK(import_product_keep(product, scene.blobs, &scene.progress, &error));
    assert_int_equal(blob_store_count(scene.blobs), 2 * 3);
}

TEST(what_a_reader_should_not_have_left_is_refused)
{
    AUTO_SCENE struct scene scene;
    scene_init(&scene);
    put(&scene, "train-images", TEXT("no idx"));
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_CORRUPT);
    put_all(&scene);
    put(&scene, "train-labels", TEXT("\0\0\x08\x01\0\0\0\2\0\1"));
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_CORRUPT);
    put_all(&scene);
    put(&scene, "job.json", TEXT("{\"train\":{\"model\":\"none\"},\"sync\":{}}"));
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_INVALID);
    put_all(&scene);
    put(&scene, "columns", TEXT("{}"));
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_INVALID);
    put_all(&scene);
    ASSERT_FAILS(read_product(&scene, 64), ERROR_EXHAUSTED);
    assert_int_equal(unlink(path_of(&scene, "columns")), 0);
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_NOT_FOUND);
}

TEST(links_pipes_and_folders_are_no_files)
{
    AUTO_SCENE struct scene scene;
    scene_init(&scene);
    assert_int_equal(unlink(path_of(&scene, "columns")), 0);
    assert_int_equal(symlink("/etc/passwd", scene.path), 0);
    assert_int_equal(read_product(&scene, BYTES_MAX), -1);
    assert_int_equal(unlink(path_of(&scene, "columns")), 0);
    assert_int_equal(mkfifo(scene.path, 0644), 0);
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_CORRUPT);
    assert_int_equal(unlink(path_of(&scene, "columns")), 0);
    assert_int_equal(mkdir(scene.path, 0755), 0);
    ASSERT_FAILS(read_product(&scene, BYTES_MAX), ERROR_CORRUPT);
}

/* The mount of one file of 4 bytes in two lines, with `more` or less behind it. */
static int read_mount(struct scene *scene, struct text more, size_t cut)
{
    struct mount_file file = {TEXT("rows"), 4, false};
    uint64_t cuts[] = {0, 2};
    const struct mount_index index = {
        .is_single = true, .files = &file, .file_count = 1, .cuts = cuts, .cut_count = 2};
    struct buffer table AUTO_BUFFER, all AUTO_BUFFER;
    uint8_t header[MOUNT_HEADER_SIZE];
    buffer_init(&table, MOUNT_INDEX_SIZE_MAX);
    buffer_init(&all, MOUNT_INDEX_SIZE_MAX);
    ASSERT_OK(mount_index_encode(&index, &table, &error));
    mount_header_write(table.size, header);
    buffer_append(&all, header, sizeof(header));
    buffer_append(&all, table.data, table.size);
    buffer_append(&all, more.data, more.size);
    put(scene, "mount", (struct text){buffer_text(&all).data, all.size - cut});
    import_product_done(&scene->product);
    return import_product_read_mount(&scene->product, scene->folder, BYTES_MAX, &error);
}

TEST(a_mount_becomes_one_input_and_a_false_one_none)
{
    AUTO_SCENE struct scene scene;
    scene_init(&scene);
    ASSERT_OK(read_mount(&scene, TEXT("a\nb\n"), 0));
    const struct import_product *product = &scene.product;
    const struct job_input *input = &product->inputs[product->input_first];
    assert_true(product->is_mount && product->input_first == JOB_PARTS_MAX - 1);
    assert_int_equal(product->mount_files, 1);
    assert_int_equal(product->mount_parts, 2);
    assert_int_equal(input->split, JOB_SPLIT_MOUNT);
    assert_int_equal(product->chunk_count, 2); /* with the manifest */
    ASSERT_OK(import_product_keep(product, scene.blobs, &scene.progress, &error));
    ASSERT_FAILS(read_mount(&scene, TEXT("a\nb"), 0), ERROR_CORRUPT);
    ASSERT_FAILS(read_mount(&scene, TEXT("a\nb\nc"), 0), ERROR_CORRUPT);
    ASSERT_FAILS(read_mount(&scene, TEXT("a\nb\n"), 12), ERROR_CORRUPT);
    put(&scene, "mount", TEXT("short"));
    import_product_done(&scene.product);
    ASSERT_FAILS(import_product_read_mount(&scene.product, scene.folder, BYTES_MAX, &error),
                 ERROR_CORRUPT);
}

TEST(what_was_sent_is_laid_out_unless_it_is_stopped)
{
    AUTO_SCENE struct scene scene;
    scene_init(&scene);
    AUTO_FD int fd = open(path_of(&scene, "job.json"), O_RDONLY | O_CLOEXEC);
    const struct pack_source source = pack_source_fd(&fd);
    const struct pack_sink sink = pack_sink_store(scene.blobs);
    const struct pack_options packing = {.chunk_bytes = 16};
    struct manifest manifest;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 4096);
    ASSERT_OK(pack_stream(scene.arena, &packing, &source, &sink, &manifest, &error));
    ASSERT_OK(
        import_lay_out(scene.blobs, &manifest, path_of(&scene, "laid"), &scene.progress, &error));
    assert_int_equal(atomic_load(&scene.progress.done_bytes), sizeof(job) - 1);
    ASSERT_OK(file_read(scene.path, &bytes, &error));
    assert_true(text_equal(buffer_text(&bytes), text_of(job)));
    atomic_store(&scene.progress.is_stopped, true);
    ASSERT_FAILS(
        import_lay_out(scene.blobs, &manifest, path_of(&scene, "other"), &scene.progress, &error),
        ERROR_CONFLICT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_becomes_the_inputs_of_a_job),
        cmocka_unit_test(of_data_at_lenders_only_the_test_is_taken),
        cmocka_unit_test(what_a_reader_should_not_have_left_is_refused),
        cmocka_unit_test(links_pipes_and_folders_are_no_files),
        cmocka_unit_test(a_mount_becomes_one_input_and_a_false_one_none),
        cmocka_unit_test(what_was_sent_is_laid_out_unless_it_is_stopped),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests_name("import_store", tests, NULL, NULL);
}
