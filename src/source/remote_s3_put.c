/*
 * S3, writing: an object by one PUT, or in parts above S3_PART_BYTES, each signed with the hash of
 * its bytes. Parts of an upload that failed are dropped, as far as the server is there.
 */
#include "source/aws.h"
#include "source/remote_internal.h"
#include "source/xml_element.h"

#include <ctype.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARTS_MAX = 10000, /* S3's own */
    ETAG_SIZE = 128,
    ID_SIZE = 2048,
    QUERY_SIZE = 3 * ID_SIZE + 64,
};
#define S3_PART_BYTES ((size_t)8 << 20)

struct upload {
    struct text bytes; /* of the whole */
    size_t part_bytes;
    char id[ID_SIZE];
    char (*etags)[ETAG_SIZE];
    size_t part_count, part_index;
    bool is_gone; /* with its parts, put together or not */
};

/* ---- One request ----------------------------------------------------------------------------- */

struct step {
    const char *method, *query; /* the query without its question mark; "": none */
    struct text body;
};

static int ask(struct remote_reading *reading, const struct step *step,
               struct http_response *response, struct error *error)
{
    struct remote *remote = reading->remote;
    struct remote_request request = {0};
    char hash[REMOTE_HASH_TEXT_SIZE];
    struct buffer url AUTO_BUFFER;
    buffer_init(&url, sizeof(request.url));
    remote_s3_write_url(remote, &url);
    aws_encode(remote->place.path, "/", &url);
    if (step->query[0])
        buffer_append_format(&url, "?%s", step->query);
    if (buffer_check(&url, error) < 0 ||
        text_copy(buffer_text(&url), request.url, sizeof(request.url), error) < 0)
        return -1;
    remote_hash_hex(step->body, hash);
    remote_add_header(&request, "Content-Type", TEXT("application/octet-stream"));
    remote_s3_sign(remote, hash, &request);
    struct http_call_options options = {
        .method = step->method, .body = step->body, .is_body_kept = true};
    if (remote_exchange(reading, &request, &options, response, error) < 0)
        return -1;
    return remote_judge_put(remote, response, error);
}

static int put_whole(struct remote_reading *reading, void *context, struct error *error)
{
    const struct upload *upload = context;
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    return ask(reading, &(struct step){"PUT", "", upload->bytes}, &response, error);
}

/* ---- In parts -------------------------------------------------------------------------------- */

/* An empty query must be written with its equals sign: so it is signed. */
static int begin(struct remote_reading *reading, void *context, struct error *error)
{
    struct upload *upload = context;
    struct http_response response AUTO_HTTP_RESPONSE;
    struct text id;
    http_response_init(&response);
    if (ask(reading, &(struct step){"POST", "uploads=", TEXT("")}, &response, error) < 0)
        return -1;
    if (!xml_element_find(buffer_text(&response.body), "UploadId", &id) || !id.size)
        return error_set(error, ERROR_CORRUPT, "the answer does not name the upload");
    return text_copy(id, upload->id, sizeof(upload->id), error);
}

static int write_query(const struct upload *upload, size_t part, char out[QUERY_SIZE],
                       struct error *error)
{
    struct buffer query AUTO_BUFFER;
    buffer_init(&query, QUERY_SIZE - 1);
    if (part)
        buffer_append_format(&query, "partNumber=%zu&", part);
    buffer_append_string(&query, "uploadId=");
    aws_encode(text_of(upload->id), "", &query);
    return buffer_check(&query, error) < 0 ? -1
                                           : text_copy(buffer_text(&query), out, QUERY_SIZE, error);
}

static bool is_etag(const char *etag)
{
    for (const char *at = etag; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '"' && *at != '-')
            return false;
    return etag[0] != '\0';
}

static struct text unquoted(const char *etag)
{
    const struct text text = text_of(etag);
    const bool is_quoted = text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"';
    return is_quoted ? (struct text){text.data + 1, text.size - 2} : text;
}

static int put_part(struct remote_reading *reading, void *context, struct error *error)
{
    struct upload *upload = context;
    const size_t from = upload->part_index * upload->part_bytes;
    const size_t left = upload->bytes.size - from;
    const struct text part = {upload->bytes.data + from,
                              left < upload->part_bytes ? left : upload->part_bytes};
    char query[QUERY_SIZE];
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    if (write_query(upload, upload->part_index + 1, query, error) < 0 ||
        ask(reading, &(struct step){"PUT", query, part}, &response, error) < 0)
        return -1;
    if (!is_etag(response.etag))
        return error_set(error, ERROR_CORRUPT, "the answer to a part has no ETag");
    memcpy(upload->etags[upload->part_index], response.etag, ETAG_SIZE);
    return 0;
}

static bool is_upload_gone(const struct http_response *response)
{
    struct text code;
    return response->status == 404 &&
           xml_element_find(buffer_text(&response->body), "Code", &code) &&
           text_is(code, "NoSuchUpload");
}

/* The ETag of an object that was put together of these parts: the MD5 of theirs, which are MD5 too,
 * and how many. False: theirs are something else, as with some ways to encrypt. */
static bool whole_etag(const struct upload *upload, char out[ETAG_SIZE])
{
    enum { MD5_SIZE = 16 };
    uint8_t digest[EVP_MAX_MD_SIZE];
    char hex[2 * MD5_SIZE + 1];
    unsigned size = 0;
    struct error ignored;
    struct buffer digests AUTO_BUFFER;
    buffer_init(&digests, upload->part_count * MD5_SIZE);
    for (size_t i = 0; i < upload->part_count; i++) {
        const struct text etag = unquoted(upload->etags[i]);
        if (text_hex_decode(etag, digest, MD5_SIZE, &ignored) < 0)
            return false;
        buffer_append(&digests, digest, MD5_SIZE);
    }
    if (EVP_Digest(digests.data, digests.size, digest, &size, EVP_md5(), NULL) != 1)
        return false;
    text_hex_encode(digest, MD5_SIZE, hex);
    snprintf(out, ETAG_SIZE, "%s-%zu", hex, upload->part_count);
    return true;
}

/* Whether it was put together already, and the answer to that got lost on its way: what lies there
 * may also be another of the same size. */
static bool is_whole(struct remote_reading *reading, const struct upload *upload)
{
    char etag[ETAG_SIZE];
    struct error ignored; /* that the upload is gone is what is told then */
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    return whole_etag(upload, etag) &&
           ask(reading, &(struct step){"HEAD", "", TEXT("")}, &response, &ignored) == 0 &&
           response.body_bytes >= 0 && (size_t)response.body_bytes == upload->bytes.size &&
           text_is(unquoted(response.etag), etag);
}

/* Its answer may begin before it is done, so that a failure has status 200, too. */
static int complete(struct remote_reading *reading, void *context, struct error *error)
{
    struct upload *upload = context;
    char query[QUERY_SIZE];
    struct text etag;
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer list AUTO_BUFFER;
    http_response_init(&response);
    buffer_init(&list, upload->part_count * (ETAG_SIZE + 80) + 80);
    buffer_append_string(&list, "<CompleteMultipartUpload>");
    for (size_t i = 0; i < upload->part_count; i++)
        buffer_append_format(&list, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>",
                             i + 1, upload->etags[i]);
    buffer_append_string(&list, "</CompleteMultipartUpload>");
    if (buffer_check(&list, error) < 0 || write_query(upload, 0, query, error) < 0)
        return -1;
    if (ask(reading, &(struct step){"POST", query, buffer_text(&list)}, &response, error) < 0) {
        upload->is_gone = is_upload_gone(&response);
        return upload->is_gone && is_whole(reading, upload) ? 0 : -1;
    }
    if (!xml_element_find(buffer_text(&response.body), "ETag", &etag))
        return error_set(error, ERROR_UNAVAILABLE, "the parts were not put together");
    return 0;
}

static int drop(struct remote_reading *reading, const struct upload *upload, struct error *error)
{
    char query[QUERY_SIZE];
    struct http_response response AUTO_HTTP_RESPONSE;
    http_response_init(&response);
    if (write_query(upload, 0, query, error) < 0)
        return -1;
    return ask(reading, &(struct step){"DELETE", query, TEXT("")}, &response, error);
}

static int put_parts(struct remote_reading *reading, struct upload *upload, struct error *error)
{
    if (remote_insist(reading, begin, upload, error) < 0)
        return -1;
    int result = 0;
    for (; result == 0 && upload->part_index < upload->part_count; upload->part_index++) {
        result = remote_insist(reading, put_part, upload, error);
        remote_tell_progress(reading->remote, upload->part_index * upload->part_bytes,
                             upload->bytes.size);
    }
    if (result == 0)
        result = remote_insist(reading, complete, upload, error);
    struct error ignored; /* why it failed is told already */
    if (result < 0)
        (void)drop(reading, upload, &ignored);
    return result;
}

int remote_s3_put(struct remote_reading *reading, struct text bytes, struct error *error)
{
    struct upload upload = {.bytes = bytes, .part_bytes = S3_PART_BYTES};
    if (bytes.size <= S3_PART_BYTES)
        return remote_insist(reading, put_whole, &upload, error);
    while ((bytes.size + upload.part_bytes - 1) / upload.part_bytes > PARTS_MAX)
        upload.part_bytes *= 2;
    upload.part_count = (bytes.size + upload.part_bytes - 1) / upload.part_bytes;
    upload.etags = calloc(upload.part_count, sizeof(*upload.etags));
    ASSERT(upload.etags);
    int result = put_parts(reading, &upload, error);
    if (result < 0 && upload.is_gone) { /* nothing proves that it is there: all once more */
        upload.part_index = 0;
        upload.is_gone = false;
        result = put_parts(reading, &upload, error);
    }
    free(upload.etags);
    return result;
}
