#include "blob/image.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/scope.h"
#include "blob/archive.h"
#include "blob/image_document.h"
#include "blob/image_layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PART_BYTES = 256 << 10, LAYOUT_FILES_MAX = 4096, PATH_SIZE = 256, INDEX_DEPTH_MAX = 2 };

struct image {
    struct arena *arena;
    int layout_fd; /* the archive, as files */
    int root_fd;
    struct image_room room;
    uint64_t given_back; /* of the room, by layers that are no longer needed */
};

static void image_done(struct image *image)
{
    arena_free(image->arena);
    if (image->layout_fd >= 0)
        close(image->layout_fd);
    if (image->root_fd >= 0)
        close(image->root_fd);
}

/* ---- Files of the archive -------------------------------------------------------------------- */

/* Links in it stay in it. */
static int layout_open(const struct image *image, const char *path, struct error *error)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    const int fd = (int)syscall(SYS_openat2, image->layout_fd, path, &how, sizeof(how));
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return error_set(error, ERROR_CORRUPT, "the image's file \"%.120s\" is not there", path);
}

/* Both what it hashes to and how long it is. */
static int hash_file(int fd, uint8_t out[IMAGE_DIGEST_SIZE], uint64_t *out_bytes,
                     struct error *error)
{
    static uint8_t part[PART_BYTES]; /* one image at a time */
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    uint64_t bytes = 0;
    for (;;) {
        const ssize_t size = pread(fd, part, sizeof(part), (off_t)bytes);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return error_set_errno(error, errno, "read the image");
        if (size == 0)
            break;
        crypto_hash_sha256_update(&state, part, (unsigned long long)size);
        bytes += (uint64_t)size;
    }
    crypto_hash_sha256_final(&state, out);
    *out_bytes = bytes;
    return 0;
}

static void blob_path(const struct image_descriptor *descriptor, char out[PATH_SIZE])
{
    char hex[2 * IMAGE_DIGEST_SIZE + 1];
    text_hex_encode(descriptor->digest, IMAGE_DIGEST_SIZE, hex);
    snprintf(out, PATH_SIZE, "blobs/sha256/%s", hex);
}

static int blob_open(const struct image *image, const struct image_descriptor *descriptor,
                     struct error *error)
{
    char path[PATH_SIZE];
    blob_path(descriptor, path);
    AUTO_FD int fd = layout_open(image, path, error);
    if (fd < 0)
        return -1;
    uint8_t digest[IMAGE_DIGEST_SIZE];
    uint64_t bytes = 0;
    if (hash_file(fd, digest, &bytes, error) < 0)
        return -1;
    if (memcmp(digest, descriptor->digest, sizeof(digest)) != 0 || bytes != descriptor->size_bytes)
        return error_set(error, ERROR_CORRUPT, "the image's blob %.12s is not what its digest says",
                         strrchr(path, '/') + 1);
    return TAKE_FD(fd);
}

static int read_document(const struct image *image, int fd, struct text *out, struct error *error)
{
    char *bytes = arena_alloc(image->arena, IMAGE_DOCUMENT_BYTES_MAX + 1);
    size_t size = 0;
    while (size <= IMAGE_DOCUMENT_BYTES_MAX) {
        const ssize_t got =
            pread(fd, bytes + size, IMAGE_DOCUMENT_BYTES_MAX + 1 - size, (off_t)size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "read the image");
        if (got == 0)
            break;
        size += (size_t)got;
    }
    *out = (struct text){bytes, size};
    return 0;
}

static int read_blob(const struct image *image, const struct image_descriptor *descriptor,
                     struct text *out, struct error *error)
{
    AUTO_FD int fd = blob_open(image, descriptor, error);
    return fd < 0 ? -1 : read_document(image, fd, out, error);
}

static int read_path(const struct image *image, const char *path, struct text *out,
                     struct error *error)
{
    AUTO_FD int fd = layout_open(image, path, error);
    return fd < 0 ? -1 : read_document(image, fd, out, error);
}

/* ---- What is in it --------------------------------------------------------------------------- */

static bool is_for_us(const struct image_platform *platform)
{
    return text_equal(platform->architecture, text_of(image_architecture())) &&
           text_equal(platform->os, TEXT("linux"));
}

static int refuse_platform(const struct image_platform *platform, struct error *error)
{
    return error_set(error, ERROR_REFUSED,
                     "the image is for %.*s on %.*s, and this machine is linux on %s",
                     (int)(platform->os.size < 20 ? platform->os.size : 20), platform->os.data,
                     (int)(platform->architecture.size < 20 ? platform->architecture.size : 20),
                     platform->architecture.data, image_architecture());
}

/* The first manifest for this machine, or the only one that does not say. */
static int choose_manifest(const struct image *image, struct text json, int depth,
                           struct image_descriptor *out, struct error *error)
{
    struct image_index index;
    if (image_index_read(image->arena, json, &index, error) < 0)
        return error_wrap(error, "the image's index");
    const struct image_descriptor *other = NULL;
    for (size_t i = 0; i < index.manifest_count; i++) {
        const struct image_descriptor *manifest = &index.manifests[i];
        const bool is_silent = manifest->platform.architecture.size == 0;
        if (!is_silent && !is_for_us(&manifest->platform)) {
            /* Builders add notes for a machine "unknown". */
            if (!other && !text_equal(manifest->platform.architecture, TEXT("unknown")))
                other = manifest;
            continue;
        }
        if (!image_is_index(manifest->media_type)) {
            *out = *manifest;
            return 0;
        }
        struct text inner;
        if (depth >= INDEX_DEPTH_MAX)
            return error_set(error, ERROR_CORRUPT, "the image's indexes are too deep");
        return read_blob(image, manifest, &inner, error) < 0
                   ? -1
                   : choose_manifest(image, inner, depth + 1, out, error);
    }
    if (other)
        return refuse_platform(&other->platform, error);
    return error_set(error, ERROR_CORRUPT, "the image's index names no manifest");
}

static int read_config(const struct image *image, struct text json, size_t layer_count,
                       struct image_config *out, struct error *error)
{
    if (image_config_read(image->arena, json, out, error) < 0)
        return error_wrap(error, "the image's configuration");
    if (!is_for_us(&out->platform))
        return refuse_platform(&out->platform, error);
    if (out->diff_count != layer_count)
        return error_set(error, ERROR_CORRUPT, "the image has %zu layers and names %zu",
                         layer_count, out->diff_count);
    return 0;
}

static int apply_layer(struct image *image, int fd, size_t number, struct error *error)
{
    if (image_layer_apply(fd, image->root_fd, &image->room, error) < 0)
        return error_wrap(error, "layer %zu of the image", number + 1);
    return 0;
}

/* Its room is for the files of the root now; unless it comes again. */
static int free_layer(struct image *image, const struct image_manifest *manifest, size_t index,
                      struct error *error)
{
    const struct image_descriptor *layer = &manifest->layers[index];
    for (size_t i = index + 1; i < manifest->layer_count; i++)
        if (memcmp(manifest->layers[i].digest, layer->digest, IMAGE_DIGEST_SIZE) == 0)
            return 0;
    char path[PATH_SIZE];
    struct stat status;
    blob_path(layer, path);
    /* A link is not what takes the room; it stays, as what it leads to does. */
    if (fstatat(image->layout_fd, path, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(status.st_mode) || status.st_nlink != 1)
        return 0;
    if (unlinkat(image->layout_fd, path, 0) < 0)
        return error_set_errno(error, errno, "remove a layer");
    image->given_back += (uint64_t)status.st_size;
    image->room.bytes_left += (uint64_t)status.st_size;
    return 0;
}

static int unpack_layout(struct image *image, struct text index, struct image_config *out,
                         uint64_t *out_layers, struct error *error)
{
    struct image_descriptor chosen = {0};
    struct image_manifest manifest = {0};
    struct text json;
    if (choose_manifest(image, index, 1, &chosen, error) < 0 ||
        read_blob(image, &chosen, &json, error) < 0)
        return -1;
    if (image_manifest_read(image->arena, json, &manifest, error) < 0)
        return error_wrap(error, "the image's manifest");
    if (read_blob(image, &manifest.config, &json, error) < 0 ||
        read_config(image, json, manifest.layer_count, out, error) < 0)
        return -1;
    for (size_t i = 0; i < manifest.layer_count; i++) {
        AUTO_FD int fd = blob_open(image, &manifest.layers[i], error);
        if (fd < 0 || apply_layer(image, fd, i, error) < 0 ||
            free_layer(image, &manifest, i, error) < 0)
            return -1;
    }
    *out_layers = manifest.layer_count;
    return 0;
}

static int unpack_save(struct image *image, struct text json, struct image_config *out,
                       uint64_t *out_layers, struct error *error)
{
    struct image_save save;
    struct text config;
    if (image_save_read(image->arena, json, &save, error) < 0)
        return error_wrap(error, "the image's manifest.json");
    if (read_path(image, arena_copy_string(image->arena, save.config), &config, error) < 0 ||
        read_config(image, config, save.layer_count, out, error) < 0)
        return -1;
    for (size_t i = 0; i < save.layer_count; i++) {
        AUTO_FD int fd = layout_open(image, arena_copy_string(image->arena, save.layers[i]), error);
        uint8_t digest[IMAGE_DIGEST_SIZE];
        uint64_t bytes;
        if (fd < 0 || hash_file(fd, digest, &bytes, error) < 0)
            return -1;
        if (memcmp(digest, out->diff_ids[i], sizeof(digest)) != 0)
            return error_set(error, ERROR_CORRUPT,
                             "layer %zu of the image is not what its configuration says", i + 1);
        if (apply_layer(image, fd, i, error) < 0)
            return -1;
    }
    *out_layers = save.layer_count;
    return 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* libarchive writes into the working folder. */
static int unpack_archive(struct image *image, int fd, struct error *error)
{
    const struct archive_limits limits = {image->room.bytes_left, LAYOUT_FILES_MAX};
    struct archive_summary summary = {0};
    AUTO_FD int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (here < 0 || mkdir("layout", 0700) < 0 || mkdir("root", 0755) < 0)
        return error_set_errno(error, errno, "make a folder");
    image->layout_fd = open("layout", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    image->root_fd = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (image->layout_fd < 0 || image->root_fd < 0 || fchdir(image->layout_fd) < 0)
        return error_set_errno(error, errno, "open a folder");
    const int result = archive_unpack(fd, &limits, &summary, error);
    if (fchdir(here) < 0)
        return error_set_errno(error, errno, "go back");
    if (result < 0)
        return error_wrap(error, "the image's archive");
    image->room.bytes_left -= summary.bytes;
    return 0;
}

/* Files that a sandbox shows its own over; an image rarely has them. */
static int add_mount_points(const struct image *image, struct error *error)
{
    static const char *const files[] = {"hosts", "resolv.conf"};
    if (mkdirat(image->root_fd, "etc", 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make the image's /etc");
    AUTO_FD int etc_fd =
        openat(image->root_fd, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; etc_fd >= 0 && i < sizeof(files) / sizeof(*files); i++) {
        AUTO_FD int fd =
            openat(etc_fd, files[i], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make the image's /etc/%s", files[i]);
    }
    return 0;
}

static int write_start(const struct image_config *config, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, (size_t)4 << 20);
    image_config_write(config, &json);
    if (buffer_check(&json, error) < 0)
        return error_wrap(error, "the image's configuration");
    const struct text text = buffer_text(&json);
    return file_replace("start.json", &text, 1, 0644, error);
}

/* The archive lies beside what is made of it. */
static int take_archive(struct image *image, int fd, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "look at the image's archive");
    if ((uint64_t)status.st_size > image->room.bytes_left)
        return error_set(error, ERROR_EXHAUSTED, "the archive alone takes %" PRIu64 " MiB",
                         (uint64_t)status.st_size >> 20);
    image->room.bytes_left -= (uint64_t)status.st_size;
    return unpack_archive(image, fd, error);
}

static int unpack_files(struct image *image, struct image_config *out_config, uint64_t *out_layers,
                        struct error *error)
{
    struct text json;
    struct error ignored;
    if (read_path(image, "index.json", &json, &ignored) == 0)
        return unpack_layout(image, json, out_config, out_layers, error);
    if (read_path(image, "manifest.json", &json, &ignored) == 0)
        return unpack_save(image, json, out_config, out_layers, error);
    return error_set(error, ERROR_CORRUPT,
                     "it is no image: it has neither index.json nor manifest.json");
}

int image_unpack(int fd, const struct image_limits *limits, struct image_summary *out_summary,
                 struct error *error)
{
    __attribute__((cleanup(image_done))) struct image image = {
        .arena = arena_new(0),
        .layout_fd = -1,
        .root_fd = -1,
        .room = {limits->bytes_max, limits->files_max}};
    struct image_config config;
    struct image_summary summary = {0};
    int result = take_archive(&image, fd, error);
    const uint64_t room = image.room.bytes_left;
    if (result == 0)
        result = unpack_files(&image, &config, &summary.layers, error);
    if (result < 0 && error->code == ERROR_EXHAUSTED)
        return error_wrap(error, "its archive, its layers and its files have %" PRIu64 " MiB here",
                          limits->bytes_max >> 20);
    if (result < 0 || add_mount_points(&image, error) < 0 || write_start(&config, error) < 0)
        return -1;
    AUTO_FD int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (here < 0 || image_remove(here, "layout", error) < 0)
        return here < 0 ? error_set_errno(error, errno, "open the folder") : -1;
    summary.bytes = room + image.given_back - image.room.bytes_left;
    summary.files = limits->files_max - image.room.files_left;
    *out_summary = summary;
    return 0;
}
