/*
 * Requests are signed as AWS says: an own computation of SigV4, checked against the examples AWS
 * published, comes to the signature that was sent.
 */
#include "cloud/ec2.h"
#include "testing/scripted_server.h"
#include "testing/testing.h"

#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>

enum { HASH = crypto_hash_sha256_BYTES, TEXT_SIZE = 4096, CANONICAL_SIZE = 16384 };

/* AWS's example keys. */
#define ACCESS_KEY "AKIDEXAMPLE"
#define SECRET_KEY "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

static void hash_hex(const char *data, size_t size, char out[2 * HASH + 1])
{
    unsigned char hash[HASH];
    crypto_hash_sha256(hash, (const unsigned char *)data, size);
    sodium_bin2hex(out, 2 * HASH + 1, hash, HASH);
}

static void hmac(const unsigned char *key, size_t key_size, const char *text,
                 unsigned char out[HASH])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key, key_size);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text, strlen(text));
    crypto_auth_hmacsha256_final(&state, out);
}

struct scope {
    const char *date, *region, *service;
};

static void signing_key(const struct scope *scope, unsigned char out[HASH])
{
    char first[128];
    unsigned char key[HASH];
    snprintf(first, sizeof(first), "AWS4" SECRET_KEY);
    hmac((const unsigned char *)first, strlen(first), scope->date, key);
    hmac(key, HASH, scope->region, key);
    hmac(key, HASH, scope->service, key);
    hmac(key, HASH, "aws4_request", out);
}

static void signature(const struct scope *scope, const char *instant, const char *canonical,
                      char out[2 * HASH + 1])
{
    char hash[2 * HASH + 1], to_sign[TEXT_SIZE];
    unsigned char key[HASH], signed_bytes[HASH];
    hash_hex(canonical, strlen(canonical), hash);
    snprintf(to_sign, sizeof(to_sign), "AWS4-HMAC-SHA256\n%s\n%s/%s/%s/aws4_request\n%s", instant,
             scope->date, scope->region, scope->service, hash);
    signing_key(scope, key);
    hmac(key, HASH, to_sign, signed_bytes);
    sodium_bin2hex(out, 2 * HASH + 1, signed_bytes, HASH);
}

#define HASH_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TEST(the_computation_comes_to_what_aws_published)
{
    unsigned char key[HASH];
    char hex[2 * HASH + 1];
    const struct scope iam = {"20150830", "us-east-1", "iam"};
    const struct scope service = {"20150830", "us-east-1", "service"};
    signing_key(&iam, key);
    sodium_bin2hex(hex, sizeof(hex), key, HASH);
    assert_string_equal(hex, "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
    signature(&iam, "20150830T123600Z",
              "GET\n/\nAction=ListUsers&Version=2010-05-08\n"
              "content-type:application/x-www-form-urlencoded; charset=utf-8\n"
              "host:iam.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
              "content-type;host;x-amz-date\n" HASH_OF_NOTHING,
              hex);
    assert_string_equal(hex, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
    signature(&service, "20150830T123600Z",
              "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
              "host;x-amz-date\n" HASH_OF_NOTHING,
              hex);
    assert_string_equal(hex, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    signature(&service, "20150830T123600Z",
              "POST\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
              "host;x-amz-date\n" HASH_OF_NOTHING,
              hex);
    assert_string_equal(hex, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
}

/* ---- What is sent ---------------------------------------------------------------------------- */

/* The value of a header of what was asked. */
static void header_of(const char *asked, const char *name, char out[TEXT_SIZE])
{
    char line[128];
    snprintf(line, sizeof(line), "\r\n%s: ", name);
    const char *found = strcasestr(asked, line);
    if (!found) {
        fail_msg("no header \"%s\" in \"%s\"", name, asked);
        return;
    }
    found += strlen(line);
    snprintf(out, TEXT_SIZE, "%.*s", (int)strcspn(found, "\r"), found);
}

static void part_of(const char *authorization, const char *name, char out[TEXT_SIZE])
{
    const char *found = strstr(authorization, name);
    assert_non_null(found);
    found += strlen(name);
    snprintf(out, TEXT_SIZE, "%.*s", (int)strcspn(found, ", "), found);
}

static void canonical_of(const char *asked, const char *names, char out[CANONICAL_SIZE])
{
    const char *body = strstr(asked, "\r\n\r\n") + 4;
    char hash[2 * HASH + 1], value[TEXT_SIZE], name[64];
    int size = snprintf(out, CANONICAL_SIZE, "POST\n/\n\n");
    for (const char *at = names; *at; at += strcspn(at, ";"), at += *at == ';') {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ";"), at);
        header_of(asked, name, value);
        size += snprintf(out + size, (size_t)(CANONICAL_SIZE - size), "%s:%s\n", name, value);
    }
    hash_hex(body, strlen(body), hash);
    snprintf(out + size, (size_t)(CANONICAL_SIZE - size), "\n%s\n%s", names, hash);
}

static void assert_signed(const char *session_token)
{
    static struct scripted_server server;
    const struct scripted_answer script[] = {
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
         "<TerminateInstancesResponse></TerminateInstancesResponse>"}};
    struct remote_credentials credentials = {
        .access_key = ACCESS_KEY, .secret_key = SECRET_KEY, .region = "eu-west-3"};
    char url[64], authorization[TEXT_SIZE], instant[TEXT_SIZE], credential[TEXT_SIZE];
    char names[TEXT_SIZE], given[TEXT_SIZE], canonical[CANONICAL_SIZE], hex[2 * HASH + 1], date[9];
    struct error error;
    scripted_start(&server, script, 1);
    snprintf(credentials.session_token, sizeof(credentials.session_token), "%s", session_token);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);
    AUTO(ec2)
    struct ec2 *ec2 = ec2_new(
        &(struct ec2_options){.credentials = &credentials, .endpoint_url = url, .market = "ab12"});
    ASSERT_OK(ec2_terminate(ec2, "i-1", &error));
    scripted_stop(&server);
    header_of(server.asked[0], "Authorization", authorization);
    header_of(server.asked[0], "X-Amz-Date", instant);
    part_of(authorization, "Credential=", credential);
    part_of(authorization, "SignedHeaders=", names);
    part_of(authorization, "Signature=", given);
    snprintf(date, sizeof(date), "%.8s", instant);
    char scope[TEXT_SIZE];
    snprintf(scope, sizeof(scope), ACCESS_KEY "/%s/eu-west-3/ec2/aws4_request", date);
    assert_string_equal(credential, scope);
    assert_non_null(strstr(names, "host"));
    assert_true(!session_token[0] || strstr(names, "x-amz-security-token"));
    canonical_of(server.asked[0], names, canonical);
    signature(&(struct scope){date, "eu-west-3", "ec2"}, instant, canonical, hex);
    assert_string_equal(given, hex);
}

TEST(what_is_sent_has_that_signature)
{
    assert_signed("");
    assert_signed("a/session+token==");
}

int main(void)
{
    assert_true(sodium_init() >= 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_computation_comes_to_what_aws_published),
        cmocka_unit_test(what_is_sent_has_that_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
