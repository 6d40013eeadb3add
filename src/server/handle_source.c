/* A borrower that offers to send a job's data to its leases itself. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "runtime/lease_message.h"
#include "runtime/source_key.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/view.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_TEXT_SIZE = 2 * LEASE_HASH_SIZE, KEY_TEXT_SIZE = 2 * SOURCE_SECRET_SIZE };

struct new_source {
    struct text manifest, key;
    int64_t port;
    struct json_array addresses;
};
static const struct json_field new_source_fields[] = {
    {"manifest", JSON_TEXT, offsetof(struct new_source, manifest), .is_required = true,
     .size_max = HASH_TEXT_SIZE},
    {"key", JSON_TEXT, offsetof(struct new_source, key), .is_required = true,
     .size_max = KEY_TEXT_SIZE},
    {"port", JSON_I64, offsetof(struct new_source, port), .is_required = true, .minimum = 1024,
     .maximum = 65535},
    {"addresses", JSON_TEXTS, offsetof(struct new_source, addresses), .is_required = true,
     .size_max = LEASE_ADDRESSES_MAX - 1},
};
static const struct json_schema new_source_schema =
    JSON_SCHEMA("source", new_source_fields, struct new_source);

/* The answer, on its way from the hub's thread to the one that has the request. */
struct checked {
    struct server *server;
    uint64_t request;
    bool is_reached;
};

static void answer_checked(void *context)
{
    struct checked *checked = context;
    struct http_request *request =
        checked->server->http ? http_server_find(checked->server->http, checked->request) : NULL;
    if (request) {
        struct view_answer answer;
        view_answer_begin(&answer);
        json_object_begin(&answer.writer);
        json_field_bool(&answer.writer, "is_reached", checked->is_reached);
        json_object_end(&answer.writer);
        view_answer_send(&answer, request, 200);
    }
    free(checked);
}

static void on_checked(void *context, bool is_reached)
{
    struct checked *checked = context;
    checked->is_reached = is_reached;
    loop_post(checked->server->loop, answer_checked, checked);
}

static void add_address(struct hub_borrower *borrower, struct text address)
{
    struct host_port parsed;
    struct error ignored; /* one that no lease would dial is left out */
    if (borrower->address_count == LEASE_ADDRESSES_MAX ||
        host_port_parse(address, &parsed, &ignored) < 0 || !address_may_dial(&parsed, true))
        return;
    for (uint32_t i = 0; i < borrower->address_count; i++)
        if (text_equal(text_of(borrower->addresses[i]), address))
            return;
    if (text_copy(address, borrower->addresses[borrower->address_count],
                  sizeof(borrower->addresses[0]), &ignored) == 0)
        borrower->address_count++;
}

/* False: the market does not know where the call came from, or would not dial it. */
static bool set_seen_at(const struct server *server, const struct http_request *request,
                        int64_t port, struct hub_borrower *borrower)
{
    char host[ADDRESS_TEXT_SIZE], text[ADDRESS_TEXT_SIZE + 8];
    struct error ignored;
    if (server->options.is_behind_proxy)
        return false;
    address_format_host(http_request_remote(request), host);
    if (text_copy(text_of(host), borrower->seen_at.host, sizeof(borrower->seen_at.host), &ignored) <
        0)
        return false;
    borrower->seen_at.port = (uint16_t)port;
    snprintf(text, sizeof(text), "%s:%u", host, (unsigned)port);
    add_address(borrower, text_of(text));
    return borrower->address_count == 1;
}

void handle_source_create(struct http_request *request, void *context)
{
    struct server *server = context;
    struct new_source body = {0};
    struct hub_borrower borrower = {.account = route_caller(request)->account};
    struct error error;
    if (json_read(http_request_arena(request), http_request_body(request), &new_source_schema,
                  &body, &error) < 0 ||
        text_hex_decode(body.manifest, borrower.manifest, sizeof(borrower.manifest), &error) < 0 ||
        text_hex_decode(body.key, borrower.secret, sizeof(borrower.secret), &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct checked *checked = calloc(1, sizeof(*checked));
    ASSERT(checked);
    *checked = (struct checked){.server = server, .request = http_request_id(request)};
    if (!set_seen_at(server, request, body.port, &borrower)) {
        answer_checked(checked);
    } else {
        const struct text *addresses = body.addresses.items;
        for (size_t i = 0; i < body.addresses.count; i++)
            add_address(&borrower, addresses[i]);
        borrower.on_checked = on_checked;
        borrower.context = checked;
        hub_add_borrower(server->hub, &borrower);
    }
    sodium_memzero(&borrower, sizeof(borrower));
}
