#include "source/aws.h"

#include <ctype.h>
#include <string.h>

#define REGION_DEFAULT "us-east-1"

void aws_encode(struct text text, const char *kept, struct buffer *out)
{
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if ((c < 0x80 && isalnum(c)) || memchr("-._~", c, 4) || memchr(kept, c, strlen(kept)))
            buffer_append_byte(out, c);
        else
            buffer_append_format(out, "%%%02X", c);
    }
}

const char *aws_region(const struct remote_credentials *credentials)
{
    return credentials->region[0] ? credentials->region : REGION_DEFAULT;
}

struct http_signing aws_signing(const struct remote_credentials *credentials, const char *service)
{
    return (struct http_signing){.service = service,
                                 .region = aws_region(credentials),
                                 .access_key = credentials->access_key,
                                 .secret_key = credentials->secret_key};
}

/* To add one: services answer the same with different codes. */
static const struct refusal {
    const char *code;
    const char *sentence;
} refusals[] = {
    {"InvalidAccessKeyId", "AWS_ACCESS_KEY_ID is not known there"},
    {"InvalidClientTokenId", "AWS_ACCESS_KEY_ID is not known there"},
    {"AuthFailure", "AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not known there"},
    {"SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY is not that of AWS_ACCESS_KEY_ID"},
    {"ExpiredToken", "AWS_SESSION_TOKEN has expired"},
    {"RequestExpired", "AWS_SESSION_TOKEN has expired, or this machine's clock is wrong"},
    {"InvalidToken", "AWS_SESSION_TOKEN is not that of AWS_ACCESS_KEY_ID"},
    {"RequestTimeTooSkewed", "this machine's clock differs too much from the server's"},
};

bool aws_explain(struct text code, struct error *error)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        if (text_is(code, refusals[i].code)) {
            error_fill(error, ERROR_REFUSED, "%s", refusals[i].sentence);
            return true;
        }
    return false;
}
