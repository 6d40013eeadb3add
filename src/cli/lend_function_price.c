#include "cli/lend_function_price.h"

#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/lend_settings.h"
#include "client/api.h"
#include "client/client.h"
#include "function/bill.h"
#include "market/price.h"
#include "peer/identity.h"
#include "source/remote.h"

#include <string.h>

#define GIB_MICRO_MAX INT64_C(1000000000000)
#define MICRO         INT64_C(1000000)

enum { CALL_MS = 500 }; /* of a lease's call, where its job does not say */

int lend_function_price_read(struct text text, struct lend_function_price *out_price,
                             struct error *error)
{
    struct lend_function_price price = {.is_dollars = text_starts_with(text, TEXT("$"))};
    const struct text amount =
        price.is_dollars ? (struct text){text.data + 1, text.size - 1} : text;
    if (units_parse_credits(amount, &price.micro, error) < 0)
        return error_set(error, ERROR_INVALID,
                         "--function-price: \"%.40s\" is no price: 0.06, or $0.06 for dollars",
                         text.data);
    if (price.micro < 0 || price.micro > GIB_MICRO_MAX)
        return error_set(error, ERROR_INVALID, "--function-price: from 0 to a million");
    *out_price = price;
    return 0;
}

struct lend_function_cost lend_function_cost(const struct catalogue_function *function,
                                             uint32_t memory_mb)
{
    const int64_t calls = 3600 * 1000 / CALL_MS;
    const __int128 seconds = (__int128)function->usd_micro_per_million_gib_s * 3600;
    const __int128 called = (__int128)function->usd_micro_per_million_calls * calls * 1024;
    return (struct lend_function_cost){
        .seconds_usd_micro = (int64_t)((seconds + MICRO - 1) / MICRO),
        .calls_usd_micro = (int64_t)((called / memory_mb + MICRO - 1) / MICRO),
    };
}

int64_t lend_function_credits_micro(int64_t usd_micro, int64_t micro_per_usd)
{
    const __int128 credits = ((__int128)usd_micro * micro_per_usd + MICRO - 1) / MICRO;
    return credits < GIB_MICRO_MAX ? (int64_t)credits : GIB_MICRO_MAX;
}

void lend_function_price_set(int64_t gib_micro, struct peer_options *peer)
{
    const struct price_vector usual = price_cold_start();
    const struct bill_price least =
        bill_least(&(struct bill_price){.core_micro_per_hour = usual.core_micro,
                                        .ram_micro_per_hour = usual.ram_micro},
                   gib_micro);
    peer->minimum_core_micro = least.core_micro_per_hour;
    peer->minimum_ram_micro = least.ram_micro_per_hour;
}

/* ---- What Lambda takes ----------------------------------------------------------------------- */

/* By the catalogue that is kept here, else by the program's own. */
static int find_function(const char *path, const char *region, bool is_arm64,
                         struct catalogue **out_catalogue,
                         const struct catalogue_function **out_function, struct error *error)
{
    const enum cloud_architecture architecture = is_arm64 ? CLOUD_ARM64 : CLOUD_X86_64;
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    if (catalogue_open(path, &catalogue, error) < 0)
        return error_wrap(error, "--function-catalog");
    *out_function = catalogue_find_function(catalogue, "lambda", region, architecture);
    if (!*out_function) {
        catalogue_free(catalogue);
        catalogue = catalogue_built_in();
        *out_function = catalogue_find_function(catalogue, "lambda", region, architecture);
    }
    if (!*out_function)
        return error_set(error, ERROR_NOT_FOUND,
                         "no catalogue has what Lambda takes: give --function-price");
    *out_catalogue = TAKE(catalogue);
    return 0;
}

/* In microdollars; *out_words says how it comes about, in the arena. */
static int price_of_lambda(const struct cli *cli, const struct lend_function_options *wanted,
                           const char *region, bool is_arm64, int64_t *out_usd_micro,
                           const char **out_words, struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    const struct catalogue_function *function;
    char notice[CATALOGUE_NOTICE_SIZE];
    if (find_function(wanted->catalogue, region, is_arm64, &catalogue, &function, error) < 0)
        return -1;
    const struct lend_function_cost cost =
        lend_function_cost(function, (uint32_t)wanted->memory_mb);
    catalogue_notice(catalogue, clock_utc_ms(&clock_system), CATALOGUE_AGE_DAYS_DEFAULT, notice);
    if (notice[0])
        log_event(LOG_WARN, "function_price_old", "notice=\"%s\"", notice);
    if (strcmp(function->region, region) != 0)
        log_event(LOG_WARN, "function_price_elsewhere", "region=%s taken=%s", region,
                  function->region);
    *out_usd_micro = cost.seconds_usd_micro + cost.calls_usd_micro;
    *out_words = arena_format(
        cli->arena, "Lambda takes $%.6f for a GiB-hour of %s in %s and $%.6f for its calls",
        (double)cost.seconds_usd_micro / 1e6, cloud_architecture_name(function->architecture),
        function->region, (double)cost.calls_usd_micro / 1e6);
    return 0;
}

/* ---- What the market says -------------------------------------------------------------------- */

static int ask_market(const struct cli *cli, struct api_server *out_server, struct error *error)
{
    AUTO(client) struct client *client = NULL;
    const struct client_options options = {
        .server = cli->common.servers.count ? cli->common.servers.items[0] : NULL,
        .fingerprint = cli->common.fingerprint};
    struct client_answer answer = {.schema = &api_server_schema, .value = out_server};
    if (client_open(&options, &client, error) < 0)
        return -1;
    return client_get(client, cli->arena, "/v1/server", &answer, error);
}

static bool is_enlisted(const char *state_dir)
{
    AUTO(identity) struct identity *identity = NULL;
    struct error ignored; /* then it is not */
    return identity_open(state_dir, &identity, &ignored) == 0 &&
           identity_enrolment(identity)->machine != 0;
}

static void say(int64_t gib_micro, const char *from)
{
    char credits[UNITS_TEXT_SIZE];
    log_event(LOG_INFO, "function_price", "least=\"%s\" of=\"GiB-hour\" from=\"%s\"",
              units_format_credits(gib_micro, credits), from);
}

static int set_by_rate(const struct cli *cli, const struct api_server *server, int64_t usd_micro,
                       const char *words, struct peer_options *peer, struct error *error)
{
    const int64_t rate = server->credits_micro_per_usd;
    char credits[UNITS_TEXT_SIZE];
    if (rate <= 0)
        return error_set(error, ERROR_INVALID,
                         "the market tells no rate for dollars: give --function-price in its own");
    const int64_t gib_micro = lend_function_credits_micro(usd_micro, rate);
    lend_function_price_set(gib_micro, peer);
    say(gib_micro, arena_format(cli->arena, "%s; a dollar counts for %s in the market", words,
                                units_format_credits(rate, credits)));
    return 0;
}

int lend_function_price_choose(const struct cli *cli, bool is_arm64, struct lend_options *wanted,
                               struct peer_options *peer, struct error *error)
{
    const struct lend_function_options *functions = &wanted->functions;
    struct lend_function_price price = {0};
    struct api_server server = {0};
    if (functions->count == 0 || !wanted->code || (!functions->price && !functions->is_lambda))
        return 0;
    if (functions->price && lend_function_price_read(text_of(functions->price), &price, error) < 0)
        return -1;
    if (functions->price && !price.is_dollars) {
        say(price.micro, "--function-price");
        return 0;
    }
    if (ask_market(cli, &server, error) < 0) {
        if (error->code != ERROR_UNAVAILABLE || wanted->is_new || !is_enlisted(wanted->state_dir))
            return error_wrap(error, "what a dollar counts for in the market");
        log_event(LOG_WARN, "function_price_kept", "error=\"%s\"", error->message);
        wanted->code = NULL;
        return 0;
    }
    if (functions->price)
        return set_by_rate(cli, &server, price.micro, "--function-price", peer, error);
    if (text_is(server.economy, "karma")) {
        say(0, "the market is one of karma");
        return 0;
    }
    const char *region = peer->functions.credentials->region, *words;
    int64_t usd_micro;
    if (price_of_lambda(cli, functions, region[0] ? region : "us-east-1", is_arm64, &usd_micro,
                        &words, error) < 0)
        return -1;
    return set_by_rate(cli, &server, usd_micro, words, peer, error);
}
