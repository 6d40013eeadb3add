#include "peer/enlist.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/json_schema.h"
#include "market/name.h"
#include "net/address.h"
#include "net/http_client.h"
#include "peer/peer.h"

#include <sodium.h>

enum { REQUEST_SIZE_MAX = 16384, REPLY_SIZE_MAX = 65536, TIMEOUT_MS = 15000 };

struct reply {
    uint64_t machine;
    uint64_t generation;
    uint8_t link_key[IDENTITY_KEY_SIZE];
    uint8_t server_public_key[IDENTITY_KEY_SIZE];
    char link_address[IDENTITY_ADDRESS_SIZE];
};

static const struct json_field reply_fields[] = {
    {"machine", JSON_U64, offsetof(struct reply, machine), .is_required = true},
    {"generation", JSON_U64, offsetof(struct reply, generation), .is_required = true},
    {"link_key", JSON_HEX, offsetof(struct reply, link_key), .is_required = true,
     .size_max = IDENTITY_KEY_SIZE},
    {"link_address", JSON_CHARS, offsetof(struct reply, link_address), .is_required = true,
     .size_max = IDENTITY_ADDRESS_SIZE},
    {"server_public_key", JSON_HEX, offsetof(struct reply, server_public_key), .is_required = true,
     .size_max = IDENTITY_KEY_SIZE},
};
static const struct json_schema reply_schema =
    JSON_SCHEMA_LENIENT("the market's answer", reply_fields, struct reply);

struct problem {
    struct text detail;
};
static const struct json_field problem_fields[] = {
    {"detail", JSON_TEXT, offsetof(struct problem, detail), .size_max = 1000},
};
static const struct json_schema problem_schema =
    JSON_SCHEMA_LENIENT("problem", problem_fields, struct problem);

int enlist_check_url(const char *url, struct error *error)
{
    const struct text text = text_of(url);
    if (text_starts_with(text, TEXT("https://")) && text.size > strlen("https://"))
        return 0;
    if (!text_starts_with(text, TEXT("http://")))
        return error_set(error, ERROR_INVALID, "\"%s\" is not a market's address; give https://...",
                         url);
    struct text rest = {text.data + strlen("http://"), text.size - strlen("http://")};
    struct text ignored;
    text_cut(rest, '/', &rest, &ignored);
    /* With a port or without, as URLs may be. */
    char with_port[300];
    const bool has_port = rest.size > 0 && memchr(rest.data, ':', rest.size) != NULL;
    snprintf(with_port, sizeof(with_port), TEXT_FORMAT "%s", TEXT_ARGS(rest),
             has_port ? "" : ":80");
    struct host_port host_port;
    struct address address;
    if (host_port_parse(text_of(with_port), &host_port, error) < 0)
        return error_wrap(error, "\"%s\"", url);
    if (host_port.host[0] == '\0' || address_resolve(&host_port, &address, error) < 0 ||
        !address_is_loopback(&address))
        return error_set(error, ERROR_INVALID,
                         "\"%s\" would go unencrypted over a network; use https://", url);
    return 0;
}

int enlist_check_name(struct text name, struct error *error)
{
    return name_check(name, "machine", error);
}

static void write_offer(struct json_writer *writer, const struct enlist_request *request)
{
    json_key(writer, "offer");
    json_object_begin(writer);
    json_field_i64(writer, "cores_milli", request->cores_milli);
    json_field_i64(writer, "ram_bytes", request->ram_bytes);
    json_field_i64(writer, "disk_bytes", request->disk_bytes);
    json_key(writer, "roles");
    json_array_begin(writer);
    if (request->roles & PEER_ROLE_WORKER)
        json_string(writer, "worker");
    if (request->roles & PEER_ROLE_SERVER)
        json_string(writer, "server");
    json_array_end(writer);
    json_field_bool(writer, "paused", false);
    json_field_string(writer, "network", offer_network_name(request->network));
    if (request->install != OFFER_INSTALL_NONE)
        json_field_string(writer, "install", offer_install_name(request->install));
    if (request->minimum_core_micro > 0 || request->minimum_ram_micro > 0) {
        json_key(writer, "minimum");
        json_object_begin(writer);
        json_field_i64(writer, "core_micro", request->minimum_core_micro);
        json_field_i64(writer, "ram_micro", request->minimum_ram_micro);
        json_object_end(writer);
    }
    if (request->when)
        json_field_string(writer, "when", request->when);
    if (request->zone)
        json_field_string(writer, "zone", request->zone);
    json_object_end(writer);
}

int enlist_write(const struct identity *identity, const struct enlist_request *request,
                 struct buffer *out_json, struct error *error)
{
    /* The key signs the code, so that nobody can enlist a key that is not theirs. */
    struct buffer message AUTO_BUFFER;
    buffer_init(&message, 1024);
    buffer_append_format(&message, "souk-enrol\n%s\n%s", request->code, request->name);
    if (buffer_check(&message, error) < 0)
        return error_set(error, ERROR_INVALID, "the enrolment code or the name is too long");
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    identity_sign(identity, message.data, message.size, signature);
    char key_text[2 * IDENTITY_KEY_SIZE + 1], signature_text[2 * IDENTITY_SIGNATURE_SIZE + 1];
    text_hex_encode(identity_public_key(identity), IDENTITY_KEY_SIZE, key_text);
    text_hex_encode(signature, sizeof(signature), signature_text);

    struct json_writer writer;
    json_writer_init(&writer, out_json);
    json_object_begin(&writer);
    json_field_string(&writer, "code", request->code);
    json_field_string(&writer, "public_key", key_text);
    json_field_string(&writer, "name", request->name);
    const struct probe_lent lent = {
        request->cores_milli, request->ram_bytes,   request->disk_bytes,      request->network,
        request->has_images,  request->install_max, request->forbids_programs};
    json_key(&writer, "probe");
    machine_probe_write(request->probe, &lent, &writer);
    write_offer(&writer, request);
    json_field_string(&writer, "signature", signature_text);
    json_object_end(&writer);
    return buffer_check(out_json, error);
}

int enlist_read(const struct enlist_request *request, struct text json,
                struct enrolment *out_enrolment, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(REPLY_SIZE_MAX);
    struct reply reply = {0};
    if (json_read(arena, json, &reply_schema, &reply, error) < 0)
        return -1;
    struct host_port link;
    if (host_port_parse(text_of(reply.link_address), &link, error) < 0)
        return error_wrap(error, "the market's link address");
    struct enrolment enrolment = {.machine = reply.machine,
                                  .generation = reply.generation,
                                  .cores_milli = request->cores_milli,
                                  .ram_bytes = request->ram_bytes,
                                  .disk_bytes = request->disk_bytes,
                                  .roles = request->roles};
    memcpy(enrolment.link_key, reply.link_key, sizeof(enrolment.link_key));
    memcpy(enrolment.server_public_key, reply.server_public_key,
           sizeof(enrolment.server_public_key));
    memcpy(enrolment.link_address, reply.link_address, sizeof(enrolment.link_address));
    const char *fingerprint = request->fingerprint ? request->fingerprint : "";
    if (text_copy(text_of(request->server_url), enrolment.server_url, sizeof(enrolment.server_url),
                  error) < 0 ||
        text_copy(text_of(fingerprint), enrolment.fingerprint, sizeof(enrolment.fingerprint),
                  error) < 0 ||
        text_copy(text_of(request->name), enrolment.name, sizeof(enrolment.name), error) < 0)
        return -1;
    sodium_memzero(&reply, sizeof(reply));
    *out_enrolment = enrolment;
    return 0;
}

static int enlist_refused(const struct enlist_request *request,
                          const struct http_response *response, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(REPLY_SIZE_MAX);
    struct problem problem = {0};
    struct error ignored;
    if (json_read(arena, buffer_text(&response->body), &problem_schema, &problem, &ignored) < 0)
        problem.detail = TEXT("no reason given");
    const enum error_code code = response->status >= 500 ? ERROR_UNAVAILABLE : ERROR_REFUSED;
    /* A code outlives a refusal of anything else, such as a name that is taken. */
    const char *advice = response->status == 403 ? "; \"souk machines add\" gives a new code" : "";
    if (request->out_is_name_taken)
        *request->out_is_name_taken = response->status == 409;
    const int size = (int)(problem.detail.size < 120 ? problem.detail.size : 120);
    return error_set(error, code, "the market did not enlist this machine: %.*s%s", size,
                     problem.detail.data, advice);
}

/* An address that showed one key and now shows another is somebody else's, until a person says
 * which key is right. */
static int check_same_market(const struct enrolment *former, const struct enlist_request *request,
                             const struct enrolment *now, struct error *error)
{
    if (former->machine == 0 || request->fingerprint ||
        strcmp(former->server_url, now->server_url) != 0 ||
        !memcmp(former->server_public_key, now->server_public_key, sizeof(now->server_public_key)))
        return 0;
    return error_set(error, ERROR_CONFLICT,
                     "the market at %.80s has another key than when this machine was enlisted "
                     "there; if that is right, enlist anew with --new-identity",
                     request->server_url);
}

int enlist(struct identity *identity, const struct enlist_request *request, struct error *error)
{
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, REQUEST_SIZE_MAX);
    if (enlist_check_url(request->server_url, error) < 0 ||
        enlist_write(identity, request, &body, error) < 0)
        return -1;
    char url[IDENTITY_URL_SIZE + 16];
    snprintf(url, sizeof(url), "%s/v1/machines", request->server_url);
    const struct http_header headers[] = {{"Content-Type", "application/json"}};
    const struct http_call_options options = {.method = "POST",
                                              .url = url,
                                              .headers = headers,
                                              .header_count = 1,
                                              .body = buffer_text(&body),
                                              .response_max = REPLY_SIZE_MAX,
                                              .timeout_ms = TIMEOUT_MS,
                                              .pinned_fingerprint = request->fingerprint};
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    const int called = http_call(&options, &response, error);
    if (called < 0 && error->code == ERROR_REFUSED && !request->fingerprint)
        return error_set(error, ERROR_REFUSED,
                         "the market at %.80s shows a certificate that no authority vouches for; "
                         "give --fingerprint (\"souk serve\" prints it at its start, \"souk "
                         "machines add\" in its command)",
                         request->server_url);
    if (called < 0)
        return error_wrap(error, "enlist at %s", request->server_url);
    if (response.status != 200 && response.status != 201)
        return enlist_refused(request, &response, error);
    struct enrolment enrolment;
    if (enlist_read(request, buffer_text(&response.body), &enrolment, error) < 0)
        return error_wrap(error, "enlist at %s", request->server_url);
    if (check_same_market(identity_enrolment(identity), request, &enrolment, error) < 0)
        return -1;
    const int result = identity_set_enrolment(identity, &enrolment, error);
    sodium_memzero(&enrolment, sizeof(enrolment));
    return result;
}
