#include "client/pip_report.h"

#include "net/http.h"

#include <stdio.h>
#include <string.h>

struct report_hashes {
    struct text sha256;
};
static const struct json_field hashes_fields[] = {
    {"sha256", JSON_TEXT, offsetof(struct report_hashes, sha256)},
};
static const struct json_schema hashes_schema =
    JSON_SCHEMA_LENIENT("hashes", hashes_fields, struct report_hashes);

struct report_archive {
    struct text hash; /* of an older pip: "sha256=..." */
    struct report_hashes hashes;
};
static const struct json_field archive_fields[] = {
    {"hash", JSON_TEXT, offsetof(struct report_archive, hash)},
    {"hashes", JSON_OBJECT, offsetof(struct report_archive, hashes), .schema = &hashes_schema},
};
static const struct json_schema archive_schema =
    JSON_SCHEMA_LENIENT("archive_info", archive_fields, struct report_archive);

struct report_download {
    struct text url;
    struct report_archive archive;
};
static const struct json_field download_fields[] = {
    {"url", JSON_TEXT, offsetof(struct report_download, url), .is_required = true,
     .size_max = 4096},
    {"archive_info", JSON_OBJECT, offsetof(struct report_download, archive),
     .schema = &archive_schema},
};
static const struct json_schema download_schema =
    JSON_SCHEMA_LENIENT("download_info", download_fields, struct report_download);

struct report_metadata {
    struct text name, version;
};
static const struct json_field metadata_fields[] = {
    {"name", JSON_TEXT, offsetof(struct report_metadata, name), .is_required = true},
    {"version", JSON_TEXT, offsetof(struct report_metadata, version), .is_required = true},
};
static const struct json_schema metadata_schema =
    JSON_SCHEMA_LENIENT("metadata", metadata_fields, struct report_metadata);

struct report_item {
    struct report_download download;
    bool is_direct; /* named by an address */
    struct report_metadata metadata;
};
static const struct json_field item_fields[] = {
    {"download_info", JSON_OBJECT, offsetof(struct report_item, download), .is_required = true,
     .schema = &download_schema},
    {"is_direct", JSON_BOOL, offsetof(struct report_item, is_direct)},
    {"metadata", JSON_OBJECT, offsetof(struct report_item, metadata), .is_required = true,
     .schema = &metadata_schema},
};
static const struct json_schema item_schema =
    JSON_SCHEMA_LENIENT("install", item_fields, struct report_item);

struct raw_report {
    struct json_array items;
};
static const struct json_field report_fields[] = {
    {"install", JSON_ARRAY, offsetof(struct raw_report, items), .is_required = true,
     .size_max = (size_t)2 * PACKAGE_LOCK_MAX, .schema = &item_schema},
};
static const struct json_schema report_schema =
    JSON_SCHEMA_LENIENT("pip's report", report_fields, struct raw_report);

static int hex_digit(char letter)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = letter ? strchr(digits, letter) : NULL;
    return found ? (int)(found - digits) : -1;
}

static bool parse_hash(struct text hex, uint8_t out[PACKAGE_HASH_SIZE])
{
    if (hex.size != (size_t)2 * PACKAGE_HASH_SIZE)
        return false;
    for (size_t i = 0; i < PACKAGE_HASH_SIZE; i++) {
        const int high = hex_digit(hex.data[2 * i]), low = hex_digit(hex.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int lock_item(const struct report_item *item, struct locked_package *out,
                     struct error *error)
{
    static const struct text prefix = {"sha256=", 7};
    const struct report_archive *archive = &item->download.archive;
    struct text hash = archive->hashes.sha256;
    if (!hash.size && text_starts_with(archive->hash, prefix))
        hash = (struct text){archive->hash.data + prefix.size, archive->hash.size - prefix.size};
    if (text_copy(item->metadata.name, out->name, sizeof(out->name), error) < 0 ||
        text_copy(item->metadata.version, out->version, sizeof(out->version), error) < 0)
        return error_wrap(error, "a package's name or version");
    if (item->is_direct)
        return error_set(error, ERROR_INVALID,
                         "\"%s\" is named by an address, and no index has it: say "
                         "resources.install: wheels",
                         out->name);
    if (!parse_hash(hash, out->sha256))
        return error_set(error, ERROR_INVALID, "\"%s\" has no sha256", out->name);
    return 0;
}

static int take_file(struct arena *arena, const struct report_item *item, const char **out_path,
                     struct error *error)
{
    static const struct text prefix = {"file://", 7};
    const struct text url = item->download.url;
    const struct text path = {url.data + prefix.size, url.size - prefix.size};
    char *decoded = arena_alloc(arena, path.size + 1);
    size_t size = 0;
    if (http_percent_decode(path, decoded, &size, error) < 0)
        return -1;
    decoded[size] = '\0';
    if (!text_ends_with((struct text){decoded, size}, TEXT(".whl")))
        return error_set(error, ERROR_INVALID, "\"" TEXT_FORMAT "\" is no wheel",
                         TEXT_ARGS(item->metadata.name));
    *out_path = decoded;
    return 0;
}

int pip_report_read(struct arena *arena, struct text json, struct pip_report *out_report,
                    struct error *error)
{
    struct raw_report raw = {0};
    if (json_read(arena, json, &report_schema, &raw, error) < 0)
        return -1;
    const struct report_item *items = raw.items.items;
    const size_t most = raw.items.count + 1;
    struct locked_package *packages = arena_alloc(arena, most * sizeof(*packages));
    memset(packages, 0, most * sizeof(*packages));
    struct pip_report report = {.lock = {.packages = {packages, 0}},
                                .files = arena_alloc(arena, most * sizeof(*report.files))};
    for (size_t i = 0; i < raw.items.count; i++) {
        const struct text url = items[i].download.url;
        const bool is_file = text_starts_with(url, TEXT("file:///"));
        if (!is_file && !text_starts_with(url, TEXT("https://")) &&
            !text_starts_with(url, TEXT("http://")))
            return error_set(error, ERROR_INVALID, "\"" TEXT_FORMAT "\" is of no index",
                             TEXT_ARGS(items[i].metadata.name));
        if (is_file ? take_file(arena, &items[i], &report.files[report.file_count++], error) < 0
                    : lock_item(&items[i], &packages[report.lock.packages.count++], error) < 0)
            return -1;
    }
    if (package_lock_sort(&report.lock, error) < 0)
        return -1;
    *out_report = report;
    return 0;
}
