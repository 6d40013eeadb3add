#include "client/markets.h"

#include "base/file.h"

enum { MARKETS_MAX = 100, MARKETS_SIZE_MAX = 1 << 18 };

static const struct json_field market_fields[] = {
    {"server", JSON_TEXT, offsetof(struct kept_market, server), .is_required = true,
     .size_max = 1024},
    {"fingerprint", JSON_TEXT, offsetof(struct kept_market, fingerprint)},
    {"token", JSON_TEXT, offsetof(struct kept_market, token), .is_required = true,
     .size_max = 1024},
};
static const struct json_schema market_schema =
    JSON_SCHEMA("market", market_fields, struct kept_market);

static const struct json_field markets_fields[] = {
    {"markets", JSON_ARRAY, offsetof(struct kept_markets, markets), .is_required = true,
     .size_max = MARKETS_MAX, .schema = &market_schema},
};
static const struct json_schema markets_schema =
    JSON_SCHEMA("markets", markets_fields, struct kept_markets);

static const char *markets_path(struct arena *arena, const char *config_dir)
{
    return arena_format(arena, "%s/markets", config_dir);
}

int markets_read(struct arena *arena, const char *config_dir, struct kept_markets *out,
                 struct error *error)
{
    const char *path = markets_path(arena, config_dir);
    struct buffer json AUTO_BUFFER;
    buffer_init_secret(&json, MARKETS_SIZE_MAX);
    *out = (struct kept_markets){0};
    if (file_read(path, &json, error) < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    if (json_read(arena, buffer_text(&json), &markets_schema, out, error) < 0)
        return error_wrap(error, "\"%.100s\"", path);
    return 0;
}

static struct text plain(struct text url)
{
    while (url.size && url.data[url.size - 1] == '/')
        url.size--;
    return url;
}

bool markets_is_same(struct text left, struct text right)
{
    return text_equal(plain(left), plain(right));
}

int markets_change(struct arena *arena, const char *config_dir, const char *server,
                   const struct kept_market *added, struct error *error)
{
    struct kept_markets before;
    if (markets_read(arena, config_dir, &before, error) < 0)
        return -1;
    if (before.markets.count == 0 && !added)
        return 0;
    const struct kept_market *markets = before.markets.items;
    struct kept_market *after = arena_alloc(arena, (before.markets.count + 1) * sizeof(*after));
    size_t count = 0;
    for (size_t i = 0; i < before.markets.count; i++)
        if (!markets_is_same(markets[i].server, text_of(server)) &&
            !(added && markets_is_same(markets[i].server, added->server)))
            after[count++] = markets[i];
    if (added)
        after[count++] = *added;
    if (count > MARKETS_MAX)
        return error_set(error, ERROR_EXHAUSTED,
                         "tokens of %d markets are kept in %.100s already: sign out of one",
                         MARKETS_MAX, markets_path(arena, config_dir));
    const struct kept_markets written = {.markets = {after, count}};
    struct buffer json AUTO_BUFFER;
    buffer_init_secret(&json, MARKETS_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &markets_schema, &written);
    if (buffer_check(&json, error) < 0)
        return -1;
    const struct text part = buffer_text(&json);
    return file_replace(markets_path(arena, config_dir), &part, 1, 0600, error);
}
