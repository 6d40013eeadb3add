#include "blob/image_document.h"

#include "base/buffer.h"

#include <string.h>

/* ---- Descriptors ----------------------------------------------------------------------------- */

struct raw_descriptor {
    struct text media_type;
    struct text digest;
    uint64_t size_bytes;
    struct image_platform platform;
};

static const struct json_field platform_fields[] = {
    {"architecture", JSON_TEXT, offsetof(struct image_platform, architecture), .size_max = 64},
    {"os", JSON_TEXT, offsetof(struct image_platform, os), .size_max = 64},
};
static const struct json_schema platform_schema =
    JSON_SCHEMA_LENIENT("platform", platform_fields, struct image_platform);

static const struct json_field descriptor_fields[] = {
    {"mediaType", JSON_TEXT, offsetof(struct raw_descriptor, media_type)},
    {"digest", JSON_TEXT, offsetof(struct raw_descriptor, digest), .is_required = true},
    {"size", JSON_U64, offsetof(struct raw_descriptor, size_bytes), .is_required = true},
    {"platform", JSON_OBJECT, offsetof(struct raw_descriptor, platform),
     .schema = &platform_schema},
};
static const struct json_schema descriptor_schema =
    JSON_SCHEMA_LENIENT("descriptor", descriptor_fields, struct raw_descriptor);

static int digest_read(struct text text, uint8_t out[IMAGE_DIGEST_SIZE], struct error *error)
{
    const struct text prefix = TEXT("sha256:");
    if (!text_starts_with(text, prefix) || text.size != prefix.size + (size_t)2 * IMAGE_DIGEST_SIZE)
        return error_set(error, ERROR_INVALID, "digest: only sha256: and 64 hex digits are known");
    return text_hex_decode((struct text){text.data + prefix.size, text.size - prefix.size}, out,
                           IMAGE_DIGEST_SIZE, error);
}

static int descriptor_read(const struct raw_descriptor *raw, struct image_descriptor *out,
                           struct error *error)
{
    *out = (struct image_descriptor){
        .media_type = raw->media_type, .size_bytes = raw->size_bytes, .platform = raw->platform};
    return digest_read(raw->digest, out->digest, error);
}

static int descriptors_read(struct arena *arena, struct json_array raw, const char *name,
                            struct image_descriptor **out, struct error *error)
{
    struct image_descriptor *list = arena_alloc(arena, (raw.count + 1) * sizeof(*list));
    const struct raw_descriptor *items = raw.items;
    for (size_t i = 0; i < raw.count; i++)
        if (descriptor_read(&items[i], &list[i], error) < 0)
            return error_wrap(error, "%s[%zu]", name, i);
    *out = list;
    return 0;
}

static int check_size(struct text json, struct error *error)
{
    if (json.size > IMAGE_DOCUMENT_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "longer than %d bytes", IMAGE_DOCUMENT_BYTES_MAX);
    return 0;
}

/* ---- Index and manifest ---------------------------------------------------------------------- */

struct raw_index {
    struct json_array manifests;
};
static const struct json_field index_fields[] = {
    {"manifests", JSON_ARRAY, offsetof(struct raw_index, manifests), .is_required = true,
     .size_max = IMAGE_MANIFESTS_MAX, .schema = &descriptor_schema},
};
static const struct json_schema index_schema =
    JSON_SCHEMA_LENIENT("index", index_fields, struct raw_index);

int image_index_read(struct arena *arena, struct text json, struct image_index *out,
                     struct error *error)
{
    struct raw_index raw = {0};
    struct image_index index = {0};
    if (check_size(json, error) < 0 || json_read(arena, json, &index_schema, &raw, error) < 0 ||
        descriptors_read(arena, raw.manifests, "manifests", &index.manifests, error) < 0)
        return -1;
    index.manifest_count = raw.manifests.count;
    *out = index;
    return 0;
}

struct raw_manifest {
    struct raw_descriptor config;
    struct json_array layers;
};
static const struct json_field manifest_fields[] = {
    {"config", JSON_OBJECT, offsetof(struct raw_manifest, config), .is_required = true,
     .schema = &descriptor_schema},
    {"layers", JSON_ARRAY, offsetof(struct raw_manifest, layers), .is_required = true,
     .size_max = IMAGE_LAYERS_MAX, .schema = &descriptor_schema},
};
static const struct json_schema manifest_schema =
    JSON_SCHEMA_LENIENT("manifest", manifest_fields, struct raw_manifest);

int image_manifest_read(struct arena *arena, struct text json, struct image_manifest *out,
                        struct error *error)
{
    struct raw_manifest raw = {0};
    struct image_manifest manifest = {0};
    if (check_size(json, error) < 0 || json_read(arena, json, &manifest_schema, &raw, error) < 0 ||
        descriptor_read(&raw.config, &manifest.config, error) < 0 ||
        descriptors_read(arena, raw.layers, "layers", &manifest.layers, error) < 0)
        return -1;
    manifest.layer_count = raw.layers.count;
    *out = manifest;
    return 0;
}

bool image_is_index(struct text media_type)
{
    return text_equal(media_type, TEXT("application/vnd.oci.image.index.v1+json")) ||
           text_equal(media_type,
                      TEXT("application/vnd.docker.distribution.manifest.list.v2+json"));
}

/* ---- docker save ----------------------------------------------------------------------------- */

struct raw_save {
    struct text config;
    struct json_array layers;
};
static const struct json_field save_fields[] = {
    {"Config", JSON_TEXT, offsetof(struct raw_save, config), .is_required = true},
    {"Layers", JSON_TEXTS, offsetof(struct raw_save, layers), .is_required = true,
     .size_max = IMAGE_LAYERS_MAX},
};
static const struct json_schema save_schema =
    JSON_SCHEMA_LENIENT("image", save_fields, struct raw_save);

struct raw_saves {
    struct json_array images;
};
static const struct json_field saves_fields[] = {
    {"images", JSON_ARRAY, offsetof(struct raw_saves, images), .is_required = true,
     .size_max = IMAGE_MANIFESTS_MAX, .schema = &save_schema},
};
static const struct json_schema saves_schema =
    JSON_SCHEMA("manifest.json", saves_fields, struct raw_saves);

int image_save_read(struct arena *arena, struct text json, struct image_save *out,
                    struct error *error)
{
    if (check_size(json, error) < 0)
        return -1;
    /* A list, where schemas are of objects. */
    struct buffer object AUTO_BUFFER;
    buffer_init(&object, IMAGE_DOCUMENT_BYTES_MAX + 32);
    buffer_append_string(&object, "{\"images\":");
    buffer_append_text(&object, json);
    buffer_append_string(&object, "}");
    struct raw_saves raw = {0};
    if (buffer_check(&object, error) < 0 ||
        json_read(arena, buffer_text(&object), &saves_schema, &raw, error) < 0)
        return -1;
    if (raw.images.count != 1)
        return error_set(error, ERROR_INVALID, "it holds %zu images: save one", raw.images.count);
    const struct raw_save *image = raw.images.items;
    *out = (struct image_save){
        .config = image->config, .layers = image->layers.items, .layer_count = image->layers.count};
    return 0;
}

/* ---- Configuration --------------------------------------------------------------------------- */

struct raw_start {
    struct json_array env, entrypoint, cmd;
    struct text working_dir, user;
};
#define START(member) offsetof(struct raw_start, member)
static const struct json_field start_fields[] = {
    {"Env", JSON_TEXTS, START(env), .maximum = IMAGE_WORD_BYTES_MAX, .size_max = IMAGE_WORDS_MAX},
    {"Entrypoint", JSON_TEXTS, START(entrypoint), .maximum = IMAGE_WORD_BYTES_MAX,
     .size_max = IMAGE_WORDS_MAX},
    {"Cmd", JSON_TEXTS, START(cmd), .maximum = IMAGE_WORD_BYTES_MAX, .size_max = IMAGE_WORDS_MAX},
    {"WorkingDir", JSON_TEXT, START(working_dir), .size_max = IMAGE_WORD_BYTES_MAX},
    {"User", JSON_TEXT, START(user)},
};
static const struct json_schema start_schema =
    JSON_SCHEMA_LENIENT("config", start_fields, struct raw_start);

struct raw_rootfs {
    struct json_array diff_ids;
};
static const struct json_field rootfs_fields[] = {
    {"diff_ids", JSON_TEXTS, offsetof(struct raw_rootfs, diff_ids), .is_required = true,
     .size_max = IMAGE_LAYERS_MAX},
};
static const struct json_schema rootfs_schema =
    JSON_SCHEMA_LENIENT("rootfs", rootfs_fields, struct raw_rootfs);

struct raw_config {
    struct image_platform platform;
    struct raw_start start;
    struct raw_rootfs rootfs;
};
static const struct json_field config_fields[] = {
    {"architecture", JSON_TEXT, offsetof(struct raw_config, platform.architecture),
     .is_required = true, .size_max = 64},
    {"os", JSON_TEXT, offsetof(struct raw_config, platform.os), .is_required = true,
     .size_max = 64},
    {"config", JSON_OBJECT, offsetof(struct raw_config, start), .schema = &start_schema},
    {"rootfs", JSON_OBJECT, offsetof(struct raw_config, rootfs), .is_required = true,
     .schema = &rootfs_schema},
};
static const struct json_schema config_schema =
    JSON_SCHEMA_LENIENT("image", config_fields, struct raw_config);

static int check_words(struct json_array words, const char *name, struct error *error)
{
    const struct text *items = words.items;
    for (size_t i = 0; i < words.count; i++)
        if (items[i].size > IMAGE_WORD_BYTES_MAX || memchr(items[i].data, '\0', items[i].size))
            return error_set(error, ERROR_INVALID, "config.%s[%zu]: too long, or with a zero byte",
                             name, i);
    return 0;
}

static int start_check(const struct raw_start *raw, struct image_config *out, struct error *error)
{
    if (check_words(raw->env, "Env", error) < 0 ||
        check_words(raw->entrypoint, "Entrypoint", error) < 0 ||
        check_words(raw->cmd, "Cmd", error) < 0)
        return -1;
    const struct text folder = raw->working_dir;
    if (folder.size && (folder.data[0] != '/' || memchr(folder.data, '\0', folder.size)))
        return error_set(error, ERROR_INVALID, "config.WorkingDir: not an absolute path");
    const struct text *env = raw->env.items;
    for (size_t i = 0; i < raw->env.count; i++)
        if (!memchr(env[i].data, '=', env[i].size) || env[i].data[0] == '=')
            return error_set(error, ERROR_INVALID, "config.Env[%zu]: not NAME=value", i);
    out->env = raw->env;
    out->entrypoint = raw->entrypoint;
    out->cmd = raw->cmd;
    out->working_dir = folder;
    out->user = raw->user;
    return 0;
}

int image_config_read(struct arena *arena, struct text json, struct image_config *out,
                      struct error *error)
{
    struct raw_config raw = {0};
    if (check_size(json, error) < 0 || json_read(arena, json, &config_schema, &raw, error) < 0)
        return -1;
    struct image_config config = {.platform = raw.platform,
                                  .diff_count = raw.rootfs.diff_ids.count};
    config.diff_ids = arena_alloc(arena, (config.diff_count + 1) * sizeof(*config.diff_ids));
    const struct text *digests = raw.rootfs.diff_ids.items;
    for (size_t i = 0; i < config.diff_count; i++)
        if (digest_read(digests[i], config.diff_ids[i], error) < 0)
            return error_wrap(error, "rootfs.diff_ids[%zu]", i);
    if (start_check(&raw.start, &config, error) < 0)
        return -1;
    *out = config;
    return 0;
}

void image_config_write(const struct image_config *config, struct buffer *json)
{
    const struct raw_start raw = {.env = config->env,
                                  .entrypoint = config->entrypoint,
                                  .cmd = config->cmd,
                                  .working_dir = config->working_dir,
                                  .user = config->user};
    struct json_writer writer;
    json_writer_init(&writer, json);
    json_write(&writer, &start_schema, &raw);
}

int image_start_read(struct arena *arena, struct text json, struct image_config *out,
                     struct error *error)
{
    struct raw_start raw = {0};
    struct image_config config = {0};
    if (check_size(json, error) < 0 || json_read(arena, json, &start_schema, &raw, error) < 0 ||
        start_check(&raw, &config, error) < 0)
        return -1;
    *out = config;
    return 0;
}

const char *image_architecture(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#else
    return "unknown";
#endif
}
