#include "cli/function_market.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/connect.h"
#include "cli/output.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_SIZE = 256, JOB_SIZE = 64 };

struct function_market {
    const struct cli *cli;
    struct client *client;
    char job[JOB_SIZE];
    uint64_t id; /* of the token; 0: none */
    char token[TOKEN_SIZE];
    int64_t renew_ms; /* when it has lived for half its life */
};

struct made_token {
    uint64_t id;
    int64_t expires_ms;
    struct text token;
};
#define MADE(member) offsetof(struct made_token, member)
static const struct json_field made_fields[] = {
    {"id", JSON_U64, MADE(id), .is_required = true, .minimum = 1, .maximum = INT64_MAX},
    {"expires_ms", JSON_I64, MADE(expires_ms), .is_required = true, .maximum = INT64_MAX},
    {"token", JSON_TEXT, MADE(token), .is_required = true, .size_max = TOKEN_SIZE - 1},
};
static const struct json_schema made_schema =
    JSON_SCHEMA_LENIENT("token", made_fields, struct made_token);

int function_market_find(const struct cli *cli, struct object_market *out_market,
                         struct error *error)
{
    AUTO(client) struct client *client = NULL; /* it says what is missing */
    if (cli_connect(cli, /* needs_token= */ true, &client, error) < 0)
        return error_wrap(error, "the market's store");
    *out_market = (struct object_market){
        .server = cli->common.server,
        .fingerprint = cli->common.fingerprint,
        .token = cli->common.token,
    };
    return 0;
}

static void revoke_token(struct function_market *market)
{
    char path[64];
    struct error error;
    if (!market->id)
        return;
    snprintf(path, sizeof(path), "/v1/objects/tokens/%" PRIu64, market->id);
    if (client_delete(market->client, path, &error) < 0)
        output_note(market->cli,
                    "The functions' token could not be revoked (%s); it ends within a day.",
                    error.message);
    market->id = 0;
    sodium_memzero(market->token, sizeof(market->token));
}

static int make(struct function_market *market, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new_secret(0);
    struct made_token made = {0};
    struct client_answer answer = {&made_schema, &made, {0}};
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, 1024);
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "job", market->job);
    json_object_end(&writer);
    if (client_post(market->client, arena, "/v1/objects/tokens", buffer_text(&body), &answer,
                    error) < 0)
        return error_wrap(error, "a token for the functions");
    revoke_token(market);
    market->id = made.id;
    const int64_t now_ms = clock_utc_ms(&clock_system);
    market->renew_ms = now_ms + (made.expires_ms - now_ms) / 2;
    return text_copy(made.token, market->token, sizeof(market->token), error);
}

int function_market_open(const struct cli *cli, const char *job,
                         struct function_market **out_market, struct error *error)
{
    struct function_market *market = memory_zeroed(1, sizeof(*market));
    market->cli = cli;
    if (text_copy(text_of(job), market->job, sizeof(market->job), error) < 0 ||
        cli_connect(cli, /* needs_token= */ true, &market->client, error) < 0 ||
        make(market, error) < 0) {
        function_market_close(market);
        return -1;
    }
    *out_market = market;
    return 0;
}

void function_market_close(struct function_market *market)
{
    if (!market)
        return;
    revoke_token(market);
    client_free(market->client);
    free(market);
}

int function_market_token(struct function_market *market, const char **out_token,
                          struct error *error)
{
    if (clock_utc_ms(&clock_system) >= market->renew_ms && make(market, error) < 0)
        return -1;
    *out_token = market->token;
    return 0;
}
