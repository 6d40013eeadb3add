/*
 * S3: objects by ranged GET requests, signed where there are keys. Amazon's own by the bucket's
 * host name, others by path behind AWS_ENDPOINT_URL.
 */
#include "source/aws.h"
#include "source/remote_internal.h"
#include "source/s3_answer.h"
#include "source/xml_element.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LIST_BYTES_MAX ((size_t)8 << 20) /* of a page, which has 1000 objects */

/* Amazon asks for it in each request; those that read have no body. */
#define HASH_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

void remote_s3_write_url(const struct remote *remote, struct buffer *out)
{
    const struct text bucket = remote->place.authority;
    const char *region = aws_region(&remote->credentials);
    const char *suffix = strncmp(region, "cn-", 3) == 0 ? ".cn" : "";
    struct text endpoint = text_of(remote->credentials.endpoint_url);
    while (text_ends_with(endpoint, TEXT("/")))
        endpoint.size--;
    if (endpoint.size)
        buffer_append_format(out, TEXT_FORMAT "/" TEXT_FORMAT, TEXT_ARGS(endpoint),
                             TEXT_ARGS(bucket));
    else if (memchr(bucket.data, '.', bucket.size)) /* no certificate has such a name */
        buffer_append_format(out, "https://s3.%s.amazonaws.com%s/" TEXT_FORMAT, region, suffix,
                             TEXT_ARGS(bucket));
    else
        buffer_append_format(out, "https://" TEXT_FORMAT ".s3.%s.amazonaws.com%s",
                             TEXT_ARGS(bucket), region, suffix);
}

void remote_s3_sign(const struct remote *remote, const char *body_hash,
                    struct remote_request *request)
{
    const struct remote_credentials *credentials = &remote->credentials;
    if (!credentials->access_key[0])
        return;
    request->is_signed = true;
    request->signing = aws_signing(credentials, "s3");
    remote_add_header(request, "x-amz-content-sha256", text_of(body_hash));
    /* Longer than what is copied. */
    if (credentials->session_token[0])
        request->headers[request->header_count++] =
            (struct http_header){"x-amz-security-token", credentials->session_token};
}

static int prepare(const struct remote_reading *reading, struct remote_request *out_request,
                   struct error *error)
{
    const struct remote *remote = reading->remote;
    struct buffer url AUTO_BUFFER;
    buffer_init(&url, sizeof(out_request->url));
    remote_s3_write_url(remote, &url);
    aws_encode(remote->place.path, "/", &url);
    if (buffer_check(&url, error) < 0 ||
        text_copy(buffer_text(&url), out_request->url, sizeof(out_request->url), error) < 0)
        return -1;
    remote_add_range(reading, "If-Match", out_request);
    remote_s3_sign(remote, HASH_OF_NOTHING, out_request);
    return 0;
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static const struct refusal {
    const char *code;
    enum error_code error;
    const char *sentence;
} refusals[] = {
    {"NoSuchBucket", ERROR_NOT_FOUND, "there is no such bucket"},
    {"NoSuchKey", ERROR_NOT_FOUND, "there is no such object"},
    {"NoSuchUpload", ERROR_NOT_FOUND, "the server has dropped the parts that were sent"},
    {"InvalidObjectState", ERROR_REFUSED, "it is archived and must be restored first"},
};

/* The bucket is in another region, and says in which. */
static bool learn_region(struct remote *remote, const struct http_response *response)
{
    const struct text region = text_of(response->bucket_region);
    struct error error;
    if (remote->has_found_region || !region.size ||
        text_is(region, aws_region(&remote->credentials)))
        return false;
    for (size_t i = 0; i < region.size; i++)
        if (!islower((unsigned char)region.data[i]) && !isdigit((unsigned char)region.data[i]) &&
            region.data[i] != '-')
            return false;
    remote->has_found_region = true;
    return text_copy(region, remote->credentials.region, sizeof(remote->credentials.region),
                     &error) == 0;
}

static bool explain(struct remote *remote, struct http_response *response, struct error *error)
{
    struct text code;
    if (learn_region(remote, response))
        return true;
    if (response->status == 403 && !remote->credentials.access_key[0]) {
        error_fill(error, ERROR_REFUSED,
                   "it is not public, and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set");
        return false;
    }
    if (!xml_element_find(buffer_text(&response->body), "Code", &code) || code.size > 64 ||
        !text_is_plain(code))
        return false;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        if (text_is(code, refusals[i].code)) {
            error_fill(error, refusals[i].error, "%s", refusals[i].sentence);
            return false;
        }
    if (!aws_explain(code, error) && error->code == ERROR_REFUSED)
        error_fill(error, ERROR_REFUSED, "the server refuses it: " TEXT_FORMAT, TEXT_ARGS(code));
    return false;
}

/* ---- Folders --------------------------------------------------------------------------------- */

struct page {
    struct remote_listing *listing;
    char token[2048]; /* of the next page; "": the first */
    bool has_more;
};

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* As encoding-type=url has it; into the arena. */
static struct text decode(struct arena *arena, struct text text)
{
    char *out = arena_alloc(arena, text.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        const bool is_code = text.data[i] == '%' && i + 2 < text.size &&
                             hex_of(text.data[i + 1]) >= 0 && hex_of(text.data[i + 2]) >= 0;
        if (is_code) {
            out[size++] = (char)(hex_of(text.data[i + 1]) << 4 | hex_of(text.data[i + 2]));
            i += 2;
        } else {
            out[size] = text.data[i];
            if (out[size] == '+')
                out[size] = ' ';
            size++;
        }
    }
    return (struct text){out, size};
}

static int take_page(struct remote *remote, struct page *page, struct text xml, struct error *error)
{
    const struct text prefix = {remote->place.path.data + 1, remote->place.path.size - 1};
    struct text rest = xml;
    struct text is_truncated;
    struct text token = {0};
    struct s3_object object;
    if (!xml_element_find(xml, "IsTruncated", &is_truncated))
        return error_set(error, ERROR_CORRUPT, "the answer is no list of a bucket's objects");
    while (s3_answer_next(&rest, &object)) {
        const struct text key = decode(page->listing->arena, object.key);
        if (!text_starts_with(key, prefix))
            return error_set(error, ERROR_CORRUPT, "the list has objects of another folder");
        const struct text name = {key.data + prefix.size, key.size - prefix.size};
        if (!name.size || text_ends_with(name, TEXT("/")))
            continue; /* a folder's own mark */
        if (remote_listing_add(page->listing, name, object.size, error) < 0)
            return -1;
    }
    page->has_more = text_is(text_trim(is_truncated), "true");
    if (page->has_more && !xml_element_find(xml, "NextContinuationToken", &token))
        return error_set(error, ERROR_CORRUPT, "the list does not say how it goes on");
    return text_copy(token, page->token, sizeof(page->token), error);
}

/* Their names in order, as they are signed. */
static int ask_page(struct remote_reading *reading, void *context, struct error *error)
{
    struct remote *remote = reading->remote;
    struct page *page = context;
    const struct text prefix = {remote->place.path.data + 1, remote->place.path.size - 1};
    struct remote_request request = {0};
    struct http_call_options options = {.response_max = LIST_BYTES_MAX};
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer url AUTO_BUFFER;
    http_response_init(&response);
    buffer_init(&url, sizeof(request.url));
    remote_s3_write_url(remote, &url);
    buffer_append_string(&url, "/?");
    if (page->token[0]) {
        buffer_append_string(&url, "continuation-token=");
        aws_encode(text_of(page->token), "", &url);
        buffer_append_string(&url, "&");
    }
    buffer_append_string(&url, "encoding-type=url&list-type=2&prefix=");
    aws_encode(prefix, "", &url);
    if (buffer_check(&url, error) < 0 ||
        text_copy(buffer_text(&url), request.url, sizeof(request.url), error) < 0)
        return -1;
    remote_s3_sign(remote, HASH_OF_NOTHING, &request);
    if (remote_exchange(reading, &request, &options, &response, error) < 0)
        return -1;
    if (response.status == 200)
        return take_page(remote, page, buffer_text(&response.body), error);
    remote_refuse(response.status, error);
    if (explain(remote, &response, error))
        error->code = ERROR_UNAVAILABLE;
    return -1;
}

static int list(struct remote_reading *reading, struct remote_listing *listing, struct error *error)
{
    struct page page = {.listing = listing};
    do {
        if (remote_insist(reading, ask_page, &page, error) < 0)
            return -1;
    } while (page.has_more);
    return 0;
}

const struct remote_scheme remote_s3 = {.prepare = prepare,
                                        .explain = explain,
                                        .list = list,
                                        .put = remote_s3_put,
                                        .is_parallel = true};
