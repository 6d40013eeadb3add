#include "base/assert.h"
#include "net/address.h"
#include "net/http_exchange_internal.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    RESPONSE_MAX_DEFAULT = 8 * 1024 * 1024,
    TIMEOUT_MS_DEFAULT = 30000,
    CONNECT_TIMEOUT_MS_DEFAULT = 10000,
    FINGERPRINT_BYTES = 32,
};

void http_response_init(struct http_response *response)
{
    *response = (struct http_response){
        .retry_after_s = -1, .body_bytes = -1, .range_first = -1, .range_total = -1};
    buffer_init(&response->body, RESPONSE_MAX_DEFAULT);
}

void http_response_done(struct http_response *response)
{
    buffer_done(&response->body);
}

/* --- what comes --- */

static bool take_header(struct text line, const char *name, struct text *out_value)
{
    const size_t length = strlen(name);
    if (line.size <= length || line.data[length] != ':' ||
        strncasecmp(line.data, name, length) != 0)
        return false;
    *out_value = text_trim((struct text){line.data + length + 1, line.size - length - 1});
    return true;
}

/* A header too long to be kept is left out, as if it were not there. */
static void keep(struct text value, char *out, size_t out_size)
{
    struct error error;
    if (text_copy(value, out, out_size, &error) < 0)
        out[0] = '\0';
}

static int64_t number_of(struct text value, int64_t maximum)
{
    struct error error;
    uint64_t number;
    return text_parse_u64(value, &number, &error) == 0 && number <= (uint64_t)maximum
               ? (int64_t)number
               : -1;
}

/* Headers that are kept as they are; "to add one": a field of the response and a row. */
static const struct kept_header {
    const char *name;
    size_t offset, size;
} kept_headers[] = {
#define KEPT(name, field)                                                                          \
    {                                                                                              \
        (name), offsetof(struct http_response, field), sizeof(((struct http_response *)0)->field)  \
    }
    KEPT("Content-Type", content_type),
    KEPT("Location", location),
    KEPT("ETag", etag),
    KEPT("Last-Modified", last_modified),
    KEPT("X-Amz-Bucket-Region", bucket_region),
    KEPT("Content-Encoding", content_encoding),
    KEPT("X-Amz-Function-Error", function_error),
    KEPT("X-Amz-Log-Result", log_result),
    KEPT("Lambda-Runtime-Aws-Request-Id", invocation_id),
    KEPT("Lambda-Runtime-Deadline-Ms", invocation_deadline),
#undef KEPT
};
enum { KEPT_COUNT = sizeof(kept_headers) / sizeof(*kept_headers) };

/* Forgets an interim response such as 100 Continue. */
static void forget_head(struct http_response *response)
{
    for (size_t i = 0; i < KEPT_COUNT; i++)
        ((char *)response)[kept_headers[i].offset] = '\0';
    response->retry_after_s = response->body_bytes = -1;
    response->range_first = response->range_total = -1;
}

static void take_range(struct text value, struct http_response *response)
{
    struct text range;
    struct text total;
    response->range_first = http_content_range_first(value);
    response->range_total = text_cut(value, '/', &range, &total) ? number_of(total, INT64_MAX) : -1;
}

/* These signatures are libcurl's. NOLINTBEGIN(readability-non-const-parameter) */
static size_t on_header(char *data, size_t item_size, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    struct http_response *response = exchange->response;
    const struct text line = {data, item_size * count};
    struct text value;
    for (size_t i = 0; i < KEPT_COUNT; i++)
        if (take_header(line, kept_headers[i].name, &value))
            keep(value, (char *)response + kept_headers[i].offset, kept_headers[i].size);
    if (text_starts_with(line, TEXT("HTTP/")))
        forget_head(response);
    else if (take_header(line, "Content-Range", &value))
        take_range(value, response);
    else if (take_header(line, "Content-Length", &value))
        response->body_bytes = number_of(value, INT64_MAX);
    else if (take_header(line, "Retry-After", &value))
        response->retry_after_s = number_of(value, INT32_MAX);
    return line.size;
}

/* 0: the piece was taken. */
static int give_piece(struct http_exchange *exchange, int status, struct text chunk)
{
    __typeof__(exchange->on_head) on_head = TAKE(exchange->on_head);
    exchange->response->status = status;
    if (on_head && on_head(exchange->context, exchange->response) != 0)
        return -1;
    return exchange->on_chunk(exchange->context, chunk);
}

static size_t on_body(char *data, size_t item_size, size_t count, void *context)
{
    struct http_exchange *exchange = context;
    const struct text chunk = {data, item_size * count};
    long status = 0;
    exchange->curl->curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (exchange->is_cancelled)
        return CURL_WRITEFUNC_ERROR;
    if (exchange->on_chunk && status >= 200 && status < 300) {
        if (give_piece(exchange, (int)status, chunk) == 0 && !exchange->is_cancelled)
            return chunk.size;
        error_set(&exchange->reason, ERROR_CONFLICT, "stopped");
        return CURL_WRITEFUNC_ERROR;
    }
    struct buffer *body = &exchange->response->body;
    buffer_append_text(body, chunk);
    if (body->is_overflowed) {
        error_set(&exchange->reason, ERROR_EXHAUSTED, "response is larger than %zu bytes",
                  body->size_max);
        return CURL_WRITEFUNC_ERROR;
    }
    return chunk.size;
}

static curl_socket_t on_dial(void *context, curlsocktype purpose __attribute__((unused)),
                             struct curl_sockaddr *found)
{
    struct http_exchange *exchange = context;
    struct address address = {.size = found->addrlen};
    if (found->addrlen > sizeof(address.storage))
        return CURL_SOCKET_BAD;
    memcpy(&address.storage, &found->addr, found->addrlen);
    if (!exchange->may_dial(exchange->context, &address)) {
        address_format_host(&address, exchange->undialled);
        return CURL_SOCKET_BAD;
    }
    return socket(found->family, found->socktype | SOCK_CLOEXEC, found->protocol);
}

static int on_while(void *context, curl_off_t download_total __attribute__((unused)),
                    curl_off_t downloaded __attribute__((unused)),
                    curl_off_t upload_total __attribute__((unused)),
                    curl_off_t uploaded __attribute__((unused)))
{
    struct http_exchange *exchange = context;
    if (!exchange->is_stopped(exchange->context))
        return 0;
    error_set(&exchange->reason, ERROR_CONFLICT, "stopped");
    return 1;
}

/* NOLINTEND(readability-non-const-parameter) */

/* --- what is asked --- */

#define SET(option, value) curl->curl_easy_setopt(easy, (option), (value))

static bool is_secure_url(const char *url)
{
    return strncasecmp(url, "https://", 8) == 0;
}

static bool is_loopback_url(const char *url)
{
    struct text scheme;
    struct text rest = text_of(url);
    if (!text_cut(rest, '/', &scheme, &rest) || rest.size == 0 || rest.data[0] != '/')
        return false;
    rest = (struct text){rest.data + 1, rest.size - 1};
    struct text authority;
    struct text path;
    (void)text_cut(rest, '/', &authority, &path);
    char target[ADDRESS_HOST_SIZE + 16];
    struct host_port host_port;
    struct address address;
    struct error error;
    const int length = snprintf(target, sizeof(target), TEXT_FORMAT, TEXT_ARGS(authority));
    if (length < 0 || length >= (int)sizeof(target))
        return false;
    if (host_port_parse(text_of(target), &host_port, &error) < 0) {
        /* Without a port. */
        host_port.port = 0;
        if (text_copy(authority, host_port.host, sizeof(host_port.host), &error) < 0)
            return false;
    }
    return host_port.host[0] != '\0' && address_is_numeric(&host_port) &&
           address_resolve(&host_port, &address, &error) == 0 && address_is_loopback(&address);
}

static int set_pin(CURL *easy, const struct curl_library *curl, const char *fingerprint,
                   struct error *error)
{
    uint8_t digest[FINGERPRINT_BYTES];
    if (text_hex_decode(text_of(fingerprint), digest, sizeof(digest), error) < 0)
        return error_wrap(error, "fingerprint");
    char pin[8 + 4 * ((FINGERPRINT_BYTES + 2) / 3) + 1] = "sha256//";
    EVP_EncodeBlock((unsigned char *)pin + 8, digest, sizeof(digest));
    if (SET(CURLOPT_PINNEDPUBLICKEY, pin) != CURLE_OK)
        return error_set(error, ERROR_UNAVAILABLE, "libcurl cannot pin a key");
    /* The key is known: its certificate need not be vouched for. */
    SET(CURLOPT_SSL_VERIFYPEER, 0L);
    SET(CURLOPT_SSL_VERIFYHOST, 0L);
    return 0;
}

static int add_header(struct http_exchange *exchange, const char *name, const char *value,
                      struct error *error)
{
    if (strpbrk(name, "\r\n:") || strpbrk(value, "\r\n"))
        return error_set(error, ERROR_INVALID, "header \"%s\" has a line break", name);
    char line[4096];
    const int length = snprintf(line, sizeof(line), "%s: %s", name, value);
    if (length < 0 || length >= (int)sizeof(line))
        return error_set(error, ERROR_INVALID, "header \"%s\" is too long", name);
    struct curl_slist *list = exchange->curl->curl_slist_append(exchange->headers, line);
    ASSERT(list);
    exchange->headers = list;
    return 0;
}

static int set_headers(struct http_exchange *exchange, const struct http_call_options *options,
                       struct error *error)
{
    /* Of what has no body libcurl claims none, and would sign an empty one. */
    bool has_type = !options->body.data && !options->method;
    for (size_t i = 0; i < options->header_count; i++) {
        has_type = has_type || strcasecmp(options->headers[i].name, "Content-Type") == 0;
        if (add_header(exchange, options->headers[i].name, options->headers[i].value, error) < 0)
            return -1;
    }
    if (!has_type) {
        /* Instead of the form type that libcurl would claim. */
        struct curl_slist *list =
            exchange->curl->curl_slist_append(exchange->headers, "Content-Type:");
        ASSERT(list);
        exchange->headers = list;
    }
    exchange->curl->curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
    return 0;
}

static void set_method(CURL *easy, const struct curl_library *curl,
                       const struct http_call_options *options)
{
    const bool has_body = options->body.data != NULL;
    const char *method = options->method ? options->method : has_body ? "POST" : "GET";
    if (strcmp(method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
        return;
    }
    if (has_body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->body.size);
        SET(options->is_body_kept ? CURLOPT_POSTFIELDS : CURLOPT_COPYPOSTFIELDS,
            has_body ? options->body.data : "");
    }
    SET(CURLOPT_CUSTOMREQUEST, method);
}

static void set_times(CURL *easy, const struct curl_library *curl,
                      const struct http_call_options *options)
{
    const int64_t timeout_ms = options->timeout_ms == 0  ? TIMEOUT_MS_DEFAULT
                               : options->timeout_ms < 0 ? 0
                                                         : options->timeout_ms;
    SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS,
        (long)(options->connect_timeout_ms ? options->connect_timeout_ms
                                           : CONNECT_TIMEOUT_MS_DEFAULT));
    if (options->idle_timeout_ms > 0) {
        SET(CURLOPT_LOW_SPEED_LIMIT,
            options->bytes_per_s_min ? (long)options->bytes_per_s_min : 1L);
        SET(CURLOPT_LOW_SPEED_TIME, (long)((options->idle_timeout_ms + 999) / 1000));
    }
}

static void set_hooks(struct http_exchange *exchange, const struct http_call_options *options)
{
    const struct curl_library *curl = exchange->curl;
    CURL *easy = exchange->easy;
    if (options->may_dial) {
        exchange->may_dial = options->may_dial;
        SET(CURLOPT_OPENSOCKETFUNCTION, on_dial);
        SET(CURLOPT_OPENSOCKETDATA, exchange);
    }
    exchange->is_unreached = options->is_unreached;
    if (options->is_stopped) {
        exchange->is_stopped = options->is_stopped;
        SET(CURLOPT_NOPROGRESS, 0L);
        SET(CURLOPT_XFERINFOFUNCTION, on_while);
        SET(CURLOPT_XFERINFODATA, exchange);
    }
}

static int set_signing(CURL *easy, const struct curl_library *curl,
                       const struct http_signing *signing, struct error *error)
{
    char scope[160];
    const int length =
        snprintf(scope, sizeof(scope), "aws:amz:%s:%s", signing->region, signing->service);
    if (length < 0 || length >= (int)sizeof(scope) ||
        SET(CURLOPT_USERNAME, signing->access_key) != CURLE_OK ||
        SET(CURLOPT_PASSWORD, signing->secret_key) != CURLE_OK ||
        SET(CURLOPT_AWS_SIGV4, scope) != CURLE_OK)
        return error_set(error, ERROR_UNAVAILABLE, "libcurl cannot sign requests for AWS");
    return 0;
}

/* libcurl is built to look where Debian has them; a program that is taken elsewhere with its
 * libraries (a zip for Lambda) finds them where Red Hat's kin have them. */
static void find_authorities(CURL *easy, const struct curl_library *curl)
{
    static const char elsewhere[] = "/etc/pki/tls/certs/ca-bundle.crt";
    if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) < 0 && access(elsewhere, R_OK) == 0)
        SET(CURLOPT_CAINFO, elsewhere);
}

int http_exchange_prepare(struct http_exchange *exchange, CURL *easy,
                          const struct curl_library *curl, const struct http_call_options *options,
                          struct http_response *response, struct error *error)
{
    *exchange = (struct http_exchange){.curl = curl,
                                       .easy = easy,
                                       .response = response,
                                       .on_chunk = options->on_chunk,
                                       .on_head = options->on_head,
                                       .context = options->context};
    http_response_done(response);
    http_response_init(response);
    response->body.size_max = options->response_max ? options->response_max : RESPONSE_MAX_DEFAULT;

    if (SET(CURLOPT_URL, options->url) != CURLE_OK)
        return error_set(error, ERROR_INVALID, "URL \"%s\" is not accepted", options->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    /* No signals for timeouts; SIGPIPE is seen to by the guard. */
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_ERRORBUFFER, exchange->message);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, exchange);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, exchange);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    find_authorities(easy, curl);
    if (options->may_dial || is_loopback_url(options->url))
        SET(CURLOPT_PROXY, "");
    set_hooks(exchange, options);
    set_method(easy, curl, options);
    set_times(easy, curl, options);
    if (options->pinned_fingerprint) {
        if (!is_secure_url(options->url))
            return error_set(error, ERROR_INVALID, "a pinned key needs an https:// URL");
        if (set_pin(easy, curl, options->pinned_fingerprint, error) < 0)
            return -1;
    }
    if (options->signing && set_signing(easy, curl, options->signing, error) < 0)
        return -1;
    return set_headers(exchange, options, error);
}

static bool is_secure_exchange(const struct http_exchange *exchange)
{
    char *url = NULL;
    exchange->curl->curl_easy_getinfo(exchange->easy, CURLINFO_EFFECTIVE_URL, &url);
    return url && is_secure_url(url);
}

/* What a person can do about it, where libcurl's words do not say it; NULL: they do. */
static const char *explain_failure(const struct http_exchange *exchange, CURLcode result)
{
    switch (result) {
    case CURLE_COULDNT_CONNECT:
        return "nobody answers there; is it running, and is the address right?";
    case CURLE_SSL_CONNECT_ERROR:
        /* A plain server answers with bytes that are no TLS, or just hangs up. */
        if (strstr(exchange->message, "wrong version number") ||
            strstr(exchange->message, "packet length too long"))
            return "it does not speak HTTPS; an address with http:// may be meant";
        if (strstr(exchange->message, "SSL_ERROR_SYSCALL") ||
            strstr(exchange->message, "unexpected eof"))
            return "it does not speak HTTPS, or ended the connection; an address with http:// may "
                   "be meant";
        return NULL;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        /* Bytes that are no HTTP, a TLS alert as a rule, or an address that is no URL. */
        if (result == CURLE_UNSUPPORTED_PROTOCOL && !strstr(exchange->message, "HTTP/0.9"))
            return NULL;
        if (!is_secure_exchange(exchange))
            return "it ended the connection without an answer in plain HTTP; if it serves HTTPS, "
                   "give its address with https://";
        return NULL;
    default:
        return NULL;
    }
}

int http_exchange_finish(struct http_exchange *exchange, CURLcode result, struct error *error)
{
    const struct curl_library *curl = exchange->curl;
    if (exchange->reason.code != ERROR_NONE) {
        *error = exchange->reason;
        return -1;
    }
    if (result == CURLE_OK) {
        long status = 0;
        curl->curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
        exchange->response->status = (int)status;
        char *redirect = NULL;
        curl->curl_easy_getinfo(exchange->easy, CURLINFO_REDIRECT_URL, &redirect);
        keep(text_of(redirect), exchange->response->redirect, sizeof(exchange->response->redirect));
        return 0;
    }
    if (exchange->is_unreached &&
        (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST))
        *exchange->is_unreached = true;
    if (result == CURLE_COULDNT_CONNECT && exchange->undialled[0])
        return error_set(error, ERROR_REFUSED, "its address %s may not be dialled",
                         exchange->undialled);
    const char *message =
        exchange->message[0] ? exchange->message : curl->curl_easy_strerror(result);
    const char *explained = explain_failure(exchange, result);
    if (explained)
        return error_set(error, ERROR_UNAVAILABLE, "%s", explained);
    switch (result) {
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return error_set(error, ERROR_REFUSED, "the server's key is not the pinned one");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
        return error_set(error, ERROR_REFUSED, "the server's certificate is not trusted: %s",
                         message);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return error_set(error, ERROR_INVALID, "%s", message);
    default:
        return error_set(error, ERROR_UNAVAILABLE, "%s", message);
    }
}

void http_exchange_done(struct http_exchange *exchange)
{
    if (!exchange->curl)
        return;
    /* The handle must not keep pointers to what goes away now. */
    exchange->curl->curl_easy_reset(exchange->easy);
    exchange->curl->curl_slist_free_all(exchange->headers);
    *exchange = (struct http_exchange){0};
}
