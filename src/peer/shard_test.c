/* covers mount_writer.c, shard.c
 *
 * The files of a lease, put together from chunks that are in the store; how these get there is
 * fetch.c's. Manifests are what a borrower made of them. */
#include "base/file.h"
#include "blob/manifest.h"
#include "blob/pack.h"
#include "net/http_client.h"
#include "peer/shard.h"
#include "runtime/mount_index.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 40, TURN_MS = 20, TURNS_MAX = 500 };

struct fixture {
    struct loop *loop;
    struct http_client *client;
    struct blob_store *store;
    struct arena *arena;
    char folder[64];
    char files[96];
    bool is_done;
    bool has_failed;
    struct error error;
    uint32_t rank, world; /* 0: it is alone */
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error error = {0};
    char blobs[96];
    snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/souk-shard-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->files, sizeof(fixture->files), "%s/files", fixture->folder);
    snprintf(blobs, sizeof(blobs), "%s/blobs", fixture->folder);
    ASSERT_OK(folder_make(fixture->files, 0700, &error));
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
    ASSERT_OK(blob_store_open(&(struct blob_store_options){.folder = blobs, .is_shared = true},
                              &fixture->store, &error));
    fixture->client = http_client_new(&(struct http_client_options){.loop = fixture->loop});
    fixture->arena = arena_new(0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    http_client_free(fixture->client);
    blob_store_free(fixture->store);
    loop_free(fixture->loop);
    arena_free(fixture->arena);
    const int result = folder_remove(fixture->folder, &error);
    free(fixture);
    return result;
}

static void on_done(void *context, const struct error *reason)
{
    struct fixture *fixture = context;
    assert_false(fixture->is_done);
    fixture->is_done = true;
    fixture->has_failed = reason != NULL;
    if (reason)
        fixture->error = *reason;
}

static void run(struct fixture *fixture, const struct lease_data *data, size_t count,
                uint64_t bytes_max)
{
    struct error error = {0};
    const bool is_away = false;
    fixture->is_done = false;
    const struct shard_options options = {.access = {.loop = fixture->loop,
                                                     .client = fixture->client,
                                                     .store = fixture->store,
                                                     .server_url = "http://127.0.0.1:1",
                                                     .token = "none",
                                                     .rank = fixture->rank,
                                                     .world = fixture->world,
                                                     .is_away = &is_away},
                                          .folder = fixture->files,
                                          .data = data,
                                          .data_count = count,
                                          .bytes_max = bytes_max,
                                          .callback = on_done,
                                          .context = fixture};
    AUTO(shard) struct shard *shard = shard_start(&options);
    assert_false(fixture->is_done);
    for (int i = 0; i < TURNS_MAX && !fixture->is_done; i++)
        ASSERT_OK(loop_step(fixture->loop, TURN_MS, &error));
    assert_true(fixture->is_done);
}

static void expect_failure(struct fixture *fixture, enum error_code code, const char *words)
{
    assert_true(fixture->has_failed);
    if (fixture->error.code != code || !strstr(fixture->error.message, words))
        fail_msg("code %d: %s", (int)fixture->error.code, fixture->error.message);
}

/* 40 labels, 0 to 39, behind an idx header of 8 bytes. */
static struct manifest pack_labels(struct fixture *fixture, uint64_t chunk_bytes)
{
    struct error error = {0};
    struct manifest manifest;
    uint8_t file[8 + RECORDS] = {0, 0, 8, 1, 0, 0, 0, RECORDS};
    for (int i = 0; i < RECORDS; i++)
        file[8 + i] = (uint8_t)i;
    int fd = memfd_create("labels", MFD_CLOEXEC);
    assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
    lseek(fd, 0, SEEK_SET);
    const struct pack_options options = {.media_type = "application/x-idx",
                                         .header_bytes = 8,
                                         .record_bytes = 1,
                                         .chunk_bytes = chunk_bytes};
    const struct pack_source source = pack_source_fd(&fd);
    const struct pack_sink sink = pack_sink_store(fixture->store);
    ASSERT_OK(pack_stream(fixture->arena, &options, &source, &sink, &manifest, &error));
    close(fd);
    return manifest;
}

static struct lease_data input_of(struct fixture *fixture, const struct manifest *manifest,
                                  const char *name, uint64_t first, uint64_t count)
{
    struct error error = {0};
    struct blob_hash hash;
    struct lease_data data = {.first_record = first, .record_count = count};
    snprintf(data.name, sizeof(data.name), "%s", name);
    ASSERT_OK(manifest_put(fixture->store, manifest, &hash, &error));
    memcpy(data.manifest, hash.bytes, sizeof(data.manifest));
    return data;
}

static void expect_file(struct fixture *fixture, const char *name, uint8_t first, uint8_t count)
{
    char path[192];
    uint8_t bytes[64];
    snprintf(path, sizeof(path), "%s/%s", fixture->files, name);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 8 + count);
    const uint8_t header[] = {0, 0, 8, 1, 0, 0, 0, count};
    assert_memory_equal(bytes, header, sizeof(header));
    for (uint8_t i = 0; i < count; i++)
        assert_int_equal(bytes[8 + i], first + i);
}

static void records_are_cut_out_of_chunks_into_whole_files(void **state)
{
    struct fixture *fixture = *state;
    const struct manifest large = pack_labels(fixture, 16), small = pack_labels(fixture, 2);
    const struct lease_data data[] = {input_of(fixture, &large, "all", 0, RECORDS),
                                      input_of(fixture, &large, "middle", 5, 20),
                                      /* more chunks than are fetched at a time */
                                      input_of(fixture, &small, "many", 3, 30),
                                      input_of(fixture, &small, "last", RECORDS - 1, 1)};
    run(fixture, data, 4, 1 << 20);
    assert_false(fixture->has_failed);
    expect_file(fixture, "all", 0, RECORDS);
    expect_file(fixture, "middle", 5, 20);
    expect_file(fixture, "many", 3, 30);
    expect_file(fixture, "last", RECORDS - 1, 1);
}

/* a: 24 of 'a', b/empty, b/run (a program): "bbbbbb", c: "cc", cut into chunks of 8 bytes. */
#define A_BYTES "aaaaaaaaaaaaaaaaaaaaaaaa"
static struct manifest pack_mount(struct fixture *fixture, uint64_t *out_index_size)
{
    struct error error = {0};
    struct manifest manifest;
    struct mount_file files[] = {{TEXT("a"), sizeof(A_BYTES) - 1, false},
                                 {TEXT("b/empty"), 0, false},
                                 {TEXT("b/run"), 6, true},
                                 {TEXT("c"), 2, false}};
    const struct mount_index index = {.files = files, .file_count = 4};
    struct buffer encoded AUTO_BUFFER, file AUTO_BUFFER;
    buffer_init(&encoded, 4096);
    buffer_init(&file, 4096);
    ASSERT_OK(mount_index_encode(&index, &encoded, &error));
    uint8_t header[MOUNT_HEADER_SIZE];
    mount_header_write(encoded.size, header);
    buffer_append(&file, header, sizeof(header));
    buffer_append_text(&file, buffer_text(&encoded));
    buffer_append_text(&file, TEXT(A_BYTES "bbbbbbcc"));
    int fd = memfd_create("mount", MFD_CLOEXEC);
    assert_int_equal(write(fd, file.data, file.size), file.size);
    lseek(fd, 0, SEEK_SET);
    const struct pack_options options = {
        .header_bytes = MOUNT_HEADER_SIZE, .record_bytes = 1, .chunk_bytes = 8};
    const struct pack_source source = pack_source_fd(&fd);
    const struct pack_sink sink = pack_sink_store(fixture->store);
    ASSERT_OK(pack_stream(fixture->arena, &options, &source, &sink, &manifest, &error));
    close(fd);
    *out_index_size = encoded.size;
    return manifest;
}

static void expect_text(struct fixture *fixture, const char *name, const char *text, mode_t mode)
{
    struct error error = {0};
    struct stat status;
    char path[192];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 4096);
    snprintf(path, sizeof(path), "%s/mounts/%s", fixture->files, name);
    ASSERT_OK(file_read(path, &bytes, &error));
    assert_string_equal(buffer_string(&bytes), text);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, mode);
}

static void expect_success(struct fixture *fixture)
{
    if (fixture->has_failed)
        fail_msg("%s", fixture->error.message);
}

static void a_mount_becomes_the_files_it_is(void **state)
{
    struct fixture *fixture = *state;
    uint64_t index_size;
    const struct manifest labels = pack_labels(fixture, 16);
    const struct manifest manifest = pack_mount(fixture, &index_size);
    const struct job_mount mount = {.target = TEXT("in/data")};
    struct lease_data data[] = {input_of(fixture, &labels, "all", 0, RECORDS),
                                input_of(fixture, &manifest, "mount-0", 0, manifest.record_count)};
    data[1].mount = &mount;
    run(fixture, data, 2, 1 << 20);
    expect_success(fixture);
    expect_file(fixture, "all", 0, RECORDS);
    expect_text(fixture, "in/data/a", A_BYTES, 0644);
    expect_text(fixture, "in/data/b/empty", "", 0644);
    expect_text(fixture, "in/data/b/run", "bbbbbb", 0755);
    expect_text(fixture, "in/data/c", "cc", 0644);
}

/* The second of two ranks. A chunk of the other's file is nowhere: asking for it would fail. */
static void a_shared_mount_fetches_the_ranks_own_files_alone(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    uint64_t index_size;
    struct manifest_range range;
    const struct manifest manifest = pack_mount(fixture, &index_size);
    const struct job_mount mount = {.target = TEXT("data"), .shard = true};
    struct lease_data data = input_of(fixture, &manifest, "mount-0", 0, manifest.record_count);
    data.mount = &mount;
    ASSERT_OK(manifest_map_records(&manifest, index_size + 8, 1, &range, &error));
    ASSERT_OK(blob_store_delete(fixture->store,
                                &manifest_chunk(&manifest, range.first_chunk_index)->hash, &error));
    fixture->rank = 1;
    fixture->world = 2;
    const uint64_t overhead = UINT64_C(3) * 4096; /* b, b/run and c */
    run(fixture, &data, 1, 8 + MOUNT_HEADER_SIZE + overhead);
    expect_success(fixture);
    expect_text(fixture, "data/b/run", "bbbbbb", 0755);
    expect_text(fixture, "data/c", "cc", 0644);
    char path[192];
    snprintf(path, sizeof(path), "%s/mounts/data/a", fixture->files);
    assert_int_equal(access(path, F_OK), -1);
}

static void files_and_folders_without_bytes_take_room_of_the_lease(void **state)
{
    struct fixture *fixture = *state;
    uint64_t index_size;
    const struct manifest manifest = pack_mount(fixture, &index_size);
    const struct job_mount mount = {.target = TEXT("data")};
    struct lease_data data = input_of(fixture, &manifest, "mount-0", 0, manifest.record_count);
    data.mount = &mount;
    const uint64_t overhead = UINT64_C(5) * 4096; /* four files, one folder */
    run(fixture, &data, 1, 32 + MOUNT_HEADER_SIZE + overhead - 1);
    expect_failure(fixture, ERROR_EXHAUSTED, "larger than the lease's disk");
}

static void what_is_no_mount_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct manifest manifest = pack_labels(fixture, 16);
    const struct job_mount mount = {.target = TEXT("data")};
    struct lease_data data = input_of(fixture, &manifest, "mount-0", 0, RECORDS);
    data.mount = &mount;
    run(fixture, &data, 1, 1 << 20);
    expect_failure(fixture, ERROR_CORRUPT, "not the files of a mount");
}

static void no_data_is_done_at_once(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, NULL, 0, 0);
    assert_false(fixture->has_failed);
}

static void more_than_the_leases_disk_is_refused_before_anything_is_written(void **state)
{
    struct fixture *fixture = *state;
    const struct manifest manifest = pack_labels(fixture, 16);
    const struct lease_data data[] = {input_of(fixture, &manifest, "one", 0, RECORDS),
                                      input_of(fixture, &manifest, "two", 0, RECORDS)};
    run(fixture, data, 2, UINT64_C(2) * (8 + RECORDS) - 1);
    expect_failure(fixture, ERROR_EXHAUSTED, "larger than the lease's disk");
    char path[192];
    snprintf(path, sizeof(path), "%s/one", fixture->files);
    assert_int_not_equal(access(path, F_OK), 0);
    run(fixture, data, 2, UINT64_C(2) * (8 + RECORDS));
    assert_false(fixture->has_failed);
}

static void records_that_are_not_there_are_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct manifest manifest = pack_labels(fixture, 16);
    const uint64_t firsts[] = {1, RECORDS, UINT64_MAX}, counts[] = {RECORDS, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        const struct lease_data data = input_of(fixture, &manifest, "x", firsts[i], counts[i]);
        run(fixture, &data, 1, 1 << 20);
        expect_failure(fixture, ERROR_INVALID, "data \"x\"");
    }
}

static void what_is_no_manifest_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    static const char *const texts[] = {"", "{}", "[[[[", "\xff\xfe", "{\"size\":-1}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct blob_hash hash;
        struct lease_data data = {.name = "x", .record_count = 1};
        if (texts[i][0] == '\0')
            continue;
        ASSERT_OK(blob_store_put(fixture->store, NULL, text_of(texts[i]), &hash, &error));
        memcpy(data.manifest, hash.bytes, sizeof(data.manifest));
        run(fixture, &data, 1, 1 << 20);
        expect_failure(fixture, ERROR_INVALID, "data \"x\"");
    }
}

/* A manifest that swaps its chunks for one of another size adds up, and its bytes do not. */
static void chunk_of_another_size_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct manifest manifest = pack_labels(fixture, 16);
    struct manifest_chunk *chunks =
        arena_alloc(fixture->arena, manifest.chunks.count * sizeof(*chunks));
    for (size_t i = 0; i < manifest.chunks.count; i++)
        chunks[i] = *manifest_chunk(&manifest, i);
    chunks[0].size_bytes -= 1;
    chunks[1].size_bytes += 1;
    manifest.chunks.items = chunks;
    const struct lease_data data = input_of(fixture, &manifest, "x", 0, RECORDS);
    run(fixture, &data, 1, 1 << 20);
    expect_failure(fixture, ERROR_CORRUPT, "is not what its manifest describes");
}

/* Nothing is written through a link, nor over a file of the same name. */
static void file_that_is_there_already_is_not_touched(void **state)
{
    struct fixture *fixture = *state;
    char path[192], outside[96];
    const struct manifest manifest = pack_labels(fixture, 16);
    snprintf(outside, sizeof(outside), "%s/outside", fixture->folder);
    snprintf(path, sizeof(path), "%s/link", fixture->files);
    assert_int_equal(symlink(outside, path), 0);
    const struct lease_data linked = input_of(fixture, &manifest, "link", 0, 1);
    run(fixture, &linked, 1, 1 << 20);
    assert_true(fixture->has_failed);
    assert_int_not_equal(access(outside, F_OK), 0);
    const struct lease_data twice[] = {input_of(fixture, &manifest, "same", 0, 2),
                                       input_of(fixture, &manifest, "same", 2, 2)};
    run(fixture, twice, 2, 1 << 20);
    assert_true(fixture->has_failed);
    expect_file(fixture, "same", 0, 2);
}

#define SHARD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARD_TEST(records_are_cut_out_of_chunks_into_whole_files),
        SHARD_TEST(a_mount_becomes_the_files_it_is),
        SHARD_TEST(a_shared_mount_fetches_the_ranks_own_files_alone),
        SHARD_TEST(files_and_folders_without_bytes_take_room_of_the_lease),
        SHARD_TEST(what_is_no_mount_is_refused),
        SHARD_TEST(no_data_is_done_at_once),
        SHARD_TEST(more_than_the_leases_disk_is_refused_before_anything_is_written),
        SHARD_TEST(records_that_are_not_there_are_refused),
        SHARD_TEST(what_is_no_manifest_is_refused),
        SHARD_TEST(chunk_of_another_size_is_refused),
        SHARD_TEST(file_that_is_there_already_is_not_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
