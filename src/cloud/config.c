#include "cloud/config.h"

#include "base/file.h"

#include <ctype.h>
#include <math.h>
#include <sys/stat.h>

enum { CONFIG_SIZE_MAX = 64 << 10, NAME_MAX_SIZE = 47, URL_MAX_SIZE = 255 };
#define USD_MAX 10000.0

struct config_file {
    struct cloud_config config;
    double usd_per_hour_max;
    double credits_per_usd;
    int64_t boot_s, idle_s, list_s;
    struct text access_key_id, secret_access_key, session_token;
};

#define FIELD(member) offsetof(struct config_file, member)

/* To add a field: its row here, its member, and docs/cloud.md. */
static const struct json_field fields[] = {
    {"region", JSON_TEXT, FIELD(config.region), .size_max = NAME_MAX_SIZE},
    {"zones", JSON_TEXTS, FIELD(config.zones), .size_max = CLOUD_ZONES_MAX,
     .maximum = NAME_MAX_SIZE},
    {"image", JSON_TEXT, FIELD(config.images[CLOUD_X86_64]), .size_max = NAME_MAX_SIZE},
    {"image_arm64", JSON_TEXT, FIELD(config.images[CLOUD_ARM64]), .size_max = NAME_MAX_SIZE},
    {"endpoint_url", JSON_TEXT, FIELD(config.endpoint_url), .size_max = URL_MAX_SIZE},
    {"package_url", JSON_TEXT, FIELD(config.package_url), .size_max = URL_MAX_SIZE},
    {"package_sha256", JSON_TEXT, FIELD(config.package_sha256), .size_max = 64},
    {"instances_max", JSON_I64, FIELD(config.instances_max), .is_required = true, .minimum = 1,
     .maximum = 256},
    {"usd_per_hour_max", JSON_DOUBLE, FIELD(usd_per_hour_max), .is_required = true},
    {"hours_max", JSON_I64, FIELD(config.hours_max), .minimum = 1, .maximum = INT64_C(24) * 31},
    {"boot_s", JSON_I64, FIELD(boot_s), .minimum = 10, .maximum = 3600},
    {"idle_s", JSON_I64, FIELD(idle_s), .minimum = 0, .maximum = 86400},
    {"list_s", JSON_I64, FIELD(list_s), .minimum = 1, .maximum = 3600},
    {"catalogue_age_days_max", JSON_I64, FIELD(config.catalogue_age_days_max), .minimum = 0,
     .maximum = 36500},
    {"credits_per_usd", JSON_DOUBLE, FIELD(credits_per_usd)},
    {"jobs", JSON_BOOL, FIELD(config.is_for_jobs)},
    {"access_key_id", JSON_TEXT, FIELD(access_key_id), .size_max = 131},
    {"secret_access_key", JSON_TEXT, FIELD(secret_access_key), .size_max = 131},
    {"session_token", JSON_TEXT, FIELD(session_token), .size_max = 3071},
};
static const struct json_schema schema = JSON_SCHEMA("cloud", fields, struct config_file);

/* What ends up in a script of the shell, or in a request, has nothing to quote. */
static int check_word(struct text text, const char *field, const char *more, struct error *error)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isalnum((unsigned char)text.data[i]) && !strchr(more, text.data[i]))
            return error_set(error, ERROR_INVALID,
                             "cloud.%s: has other characters than letters, digits and \"%s\"",
                             field, more);
    return 0;
}

static int check_url(struct text url, const char *field, struct error *error)
{
    if (check_word(url, field, "-._~:/?&=%+@,", error) < 0)
        return -1;
    const bool is_loopback = text_starts_with(url, TEXT("http://127.0.0.1:")) ||
                             text_starts_with(url, TEXT("http://localhost:"));
    if (url.size && !text_starts_with(url, TEXT("https://")) && !is_loopback)
        return error_set(error, ERROR_INVALID, "cloud.%s: neither HTTPS nor on this machine",
                         field);
    return 0;
}

static int check_words(const struct cloud_config *config, struct error *error)
{
    const struct text *zones = config->zones.items;
    for (size_t i = 0; i < config->zones.count; i++)
        if (!zones[i].size || check_word(zones[i], "zones", "-", error) < 0)
            return error_set(error, ERROR_INVALID, "cloud.zones: a zone is like us-east-1a");
    if (check_word(config->region, "region", "-", error) < 0 ||
        check_word(config->images[CLOUD_X86_64], "image", "-", error) < 0 ||
        check_word(config->images[CLOUD_ARM64], "image_arm64", "-", error) < 0 ||
        check_word(config->package_sha256, "package_sha256", "", error) < 0 ||
        check_url(config->endpoint_url, "endpoint_url", error) < 0 ||
        check_url(config->package_url, "package_url", error) < 0)
        return -1;
    if (!config->images[CLOUD_X86_64].size && !config->images[CLOUD_ARM64].size)
        return error_set(error, ERROR_INVALID,
                         "cloud.image: say which image instances boot, like ami-0123456789abcdef0");
    if (config->package_sha256.size && config->package_sha256.size != 64)
        return error_set(error, ERROR_INVALID, "cloud.package_sha256: not 64 hex digits");
    return 0;
}

static int check_amounts(const struct config_file *file, struct error *error)
{
    if (!(file->usd_per_hour_max > 0 && file->usd_per_hour_max <= USD_MAX))
        return error_set(error, ERROR_INVALID, "cloud.usd_per_hour_max: not from 0 to %.0f",
                         USD_MAX);
    if (!(file->credits_per_usd >= 0 && file->credits_per_usd <= 1e6))
        return error_set(error, ERROR_INVALID, "cloud.credits_per_usd: not from 0 to 1000000");
    return 0;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static int take_key(struct cloud_config *config, const char *name, struct text value,
                    struct error *error)
{
    return value.size ? remote_credentials_set(&config->credentials, text_of(name), value, error)
                      : 0;
}

static int take_credentials(struct config_file *file, const char *path, struct error *error)
{
    struct cloud_config *config = &file->config;
    struct stat status;
    const bool has_keys = file->access_key_id.size || file->secret_access_key.size;
    if (has_keys && (stat(path, &status) < 0 || status.st_mode & 077))
        return error_set(error, ERROR_REFUSED,
                         "it has keys, and others may read it: chmod 600 \"%.150s\"", path);
    if (remote_credentials_take_environment(&config->credentials, error) < 0)
        return -1;
    /* The file's own are a whole: a token of the environment belongs to other keys. */
    if (has_keys)
        config->credentials.session_token[0] = '\0';
    if (take_key(config, "AWS_ACCESS_KEY_ID", file->access_key_id, error) < 0 ||
        take_key(config, "AWS_SECRET_ACCESS_KEY", file->secret_access_key, error) < 0 ||
        take_key(config, "AWS_SESSION_TOKEN", file->session_token, error) < 0 ||
        take_key(config, "AWS_REGION", config->region, error) < 0)
        return -1;
    if (!config->credentials.access_key[0] || !config->credentials.secret_key[0])
        return error_set(error, ERROR_REFUSED,
                         "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                         "access_key_id and secret_access_key in the file");
    return 0;
}

static int take_file(struct arena *arena, const char *path, struct text json,
                     struct config_file *file, struct error *error)
{
    *file = (struct config_file){
        .config = {.hours_max = 24, .catalogue_age_days_max = CATALOGUE_AGE_DAYS_DEFAULT},
        .boot_s = 600,
        .idle_s = 600,
        .list_s = 30,
    };
    if (json_read(arena, json, &schema, file, error) < 0 || check_words(&file->config, error) < 0 ||
        check_amounts(file, error) < 0 || take_credentials(file, path, error) < 0)
        return -1;
    struct cloud_config *config = &file->config;
    if (!config->region.size)
        config->region = arena_copy_text(arena, text_of(config->credentials.region));
    if (!config->region.size)
        config->region = TEXT("us-east-1");
    config->usd_micro_per_hour_max = llround(file->usd_per_hour_max * 1e6);
    config->credits_micro_per_usd = llround(file->credits_per_usd * 1e6);
    config->boot_ms = file->boot_s * 1000;
    config->idle_ms = file->idle_s * 1000;
    config->list_ms = file->list_s * 1000;
    return 0;
}

int cloud_config_read(struct arena *arena, const char *path, struct cloud_config *out_config,
                      struct error *error)
{
    struct config_file file;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, CONFIG_SIZE_MAX);
    if (file_read(path, &json, error) < 0)
        return -1;
    const int taken = take_file(arena, path, buffer_text(&json), &file, error);
    explicit_bzero(json.data, json.size);
    if (taken < 0) {
        remote_credentials_wipe(&file.config.credentials);
        return error_wrap(error, "%.80s", path);
    }
    *out_config = file.config;
    remote_credentials_wipe(&file.config.credentials);
    return 0;
}
