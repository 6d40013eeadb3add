#include "cli/demo_market.h"

#include "base/json.h"
#include "client/api.h"
#include "sandbox/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct ready {
    struct text url;
};

static const struct json_field ready_fields[] = {
    {"url", JSON_TEXT, offsetof(struct ready, url), .is_required = true, .size_max = 512},
};
static const struct json_schema ready_schema = {
    .name = "ready",
    .fields = ready_fields,
    .field_count = 1,
    .struct_size = sizeof(struct ready),
    .is_lenient = true,
};

static const char *path(const struct demo_market *market, const char *name)
{
    return arena_format(market->cli->arena, "%s/%s", market->folder, name);
}

static int make_folder(struct demo_market *market, struct error *error)
{
    char *folder = arena_format(market->cli->arena, "%s/souk-demo.XXXXXX", market->temporary_dir);
    if (!mkdtemp(folder))
        return error_set_errno(error, errno, "make a folder in \"%s\"", market->temporary_dir);
    market->folder = folder;
    return 0;
}

static int start_server(struct demo_market *market, struct error *error)
{
    market->server.name = "the market";
    market->server.log_path = path(market, "serve.log");
    const char *const arguments[] = {"serve",       "--data",       path(market, "market"),
                                     "--listen",    market->listen, "--link-listen",
                                     "127.0.0.1:0", "--config-dir", path(market, "config"),
                                     NULL};
    struct text json;
    struct ready ready = {0};
    if (demo_process_start(&market->server, market->program, arguments, error) < 0 ||
        demo_process_wait_ready(&market->server, market->signal_fd, market->cli->arena, &json,
                                &market->is_interrupted, error) < 0 ||
        json_read(market->cli->arena, json, &ready_schema, &ready, error) < 0)
        return -1;
    market->url = arena_copy_string(market->cli->arena, ready.url);
    return 0;
}

/* Opens an account and a client that speaks for it. */
static int open_account(struct demo_market *market, const char *name, struct client **out_client,
                        struct error *error)
{
    AUTO(client) struct client *anyone = NULL;
    const struct client_options nobody = {.server = market->url};
    if (client_open(&nobody, &anyone, error) < 0)
        return -1;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 256);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "name", name);
    json_object_end(&writer);
    struct api_account_created created = {0};
    struct client_answer answer = {&api_account_created_schema, &created, {0}};
    if (client_post(anyone, market->cli->arena, "/v1/accounts", buffer_text(&body), &answer,
                    error) < 0)
        return -1;
    const struct client_options account = {
        .server = market->url, .token = arena_copy_string(market->cli->arena, created.token)};
    return client_open(&account, out_client, error);
}

static int start_lender(struct demo_market *market, struct demo_lender *lender, struct error *error)
{
    AUTO(client) struct client *owner = NULL;
    struct api_machine_code code = {0};
    struct client_answer answer = {&api_machine_code_schema, &code, {0}};
    if (open_account(market, lender->name, &owner, error) < 0 ||
        client_post(owner, market->cli->arena, "/v1/machines/codes", (struct text){0}, &answer,
                    error) < 0)
        return -1;

    lender->process.name = arena_format(market->cli->arena, "lender \"%s\"", lender->name);
    lender->process.log_path =
        path(market, arena_format(market->cli->arena, "%s.log", lender->name));
    const char *const arguments[] = {"lend",
                                     "--no-watch",
                                     "--server",
                                     market->url,
                                     "--code",
                                     arena_copy_string(market->cli->arena, code.code),
                                     "--name",
                                     lender->name,
                                     "--cores",
                                     lender->cores,
                                     "--memory",
                                     "1GiB",
                                     "--disk",
                                     "2GiB",
                                     "--roles",
                                     "worker",
                                     "--state-dir",
                                     path(market, lender->name),
                                     "--config-dir",
                                     path(market, "config"),
                                     NULL};
    return demo_process_start(&lender->process, market->program, arguments, error);
}

int demo_market_open_page(struct demo_market *market, struct error *error)
{
    struct api_page_code page = {0};
    struct client_answer answer = {&api_page_code_schema, &page, {0}};
    if (client_post(market->borrower, market->cli->arena, "/v1/account/page-codes",
                    (struct text){0}, &answer, error) < 0)
        return -1;
    market->page_url = arena_copy_string(market->cli->arena, page.url);
    return 0;
}

int demo_market_open(struct demo_market *market, struct error *error)
{
    if (make_folder(market, error) < 0 || start_server(market, error) < 0)
        return -1;
    for (int i = 0; i < DEMO_LENDER_COUNT; i++)
        if (start_lender(market, &market->lenders[i], error) < 0)
            return -1;
    for (int i = 0; i < DEMO_LENDER_COUNT; i++) {
        struct text json;
        if (demo_process_wait_ready(&market->lenders[i].process, market->signal_fd,
                                    market->cli->arena, &json, &market->is_interrupted, error) < 0)
            return -1;
    }
    if (open_account(market, "borrower", &market->borrower, error) < 0)
        return -1;
    return demo_market_open_page(market, error);
}

void demo_market_close(struct demo_market *market)
{
    client_free(market->borrower);
    market->borrower = NULL;
    for (int i = 0; i < DEMO_LENDER_COUNT; i++)
        demo_process_ask_stop(&market->lenders[i].process);
    for (int i = 0; i < DEMO_LENDER_COUNT; i++)
        demo_process_stop(&market->lenders[i].process);
    demo_process_stop(&market->server);
    struct error error = {0};
    if (market->folder && folder_remove(market->folder, &error) < 0)
        fprintf(stderr, "souk: %s\n", error.message);
    market->folder = NULL;
}
