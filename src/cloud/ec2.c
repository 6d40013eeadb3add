#include "cloud/ec2.h"

#include "base/assert.h"
#include "net/http_client.h"
#include "source/aws.h"
#include "source/xml_element.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION "2016-11-15"

enum {
    BODY_MAX = 64 << 10,
    ANSWER_MAX = 8 << 20,
    PAGE_SIZE = 100,
    PAGES_MAX = 1000,
    TOKEN_SIZE = 2048,
    URL_SIZE = 320,
    TIMEOUT_MS = 30000,
    CONNECT_MS = 10000,
};

struct ec2 {
    struct remote_credentials credentials;
    char url[URL_SIZE];
    char market[FLEET_NAME_SIZE];
    bool (*is_stopped)(void *context);
    void *context;
    struct http_session *session;
    enum fleet_failure failure;
    char code[64]; /* of the last refusal */
};

struct ec2 *ec2_new(const struct ec2_options *options)
{
    struct ec2 *ec2 = calloc(1, sizeof(*ec2));
    ASSERT(ec2);
    ec2->credentials = *options->credentials;
    const char *region = aws_region(&ec2->credentials);
    if (options->endpoint_url)
        snprintf(ec2->url, sizeof(ec2->url), "%s", options->endpoint_url);
    else
        snprintf(ec2->url, sizeof(ec2->url), "https://ec2.%s.amazonaws.com%s/", region,
                 strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
    snprintf(ec2->market, sizeof(ec2->market), "%s", options->market);
    ec2->is_stopped = options->is_stopped;
    ec2->context = options->context;
    ec2->session = http_session_new();
    return ec2;
}

void ec2_free(struct ec2 *ec2)
{
    if (!ec2)
        return;
    http_session_free(ec2->session);
    remote_credentials_wipe(&ec2->credentials);
    free(ec2);
}

enum fleet_failure ec2_failure(const struct ec2 *ec2)
{
    return ec2->failure;
}

/* ---- A call ---------------------------------------------------------------------------------- */

static void add(struct buffer *body, const char *name, struct text value)
{
    buffer_append_format(body, "&%s=", name);
    aws_encode(value, "", body);
}

static void add_string(struct buffer *body, const char *name, const char *value)
{
    add(body, name, text_of(value));
}

static void begin(struct buffer *body, const char *action)
{
    buffer_init(body, BODY_MAX);
    buffer_append_format(body, "Action=%s&Version=" API_VERSION, action);
}

static bool is_stopped(void *context)
{
    const struct ec2 *ec2 = context;
    return ec2->is_stopped && ec2->is_stopped(ec2->context);
}

/* What the cloud says, in words that need no look at its manual. */
static int refuse(struct ec2 *ec2, const struct http_response *response, struct error *error)
{
    struct ec2_refusal refusal;
    ec2->code[0] = '\0';
    if (!ec2_answer_refusal(buffer_text(&response->body), &refusal)) {
        ec2->failure = response->status >= 500 ? FLEET_UNCERTAIN : FLEET_REFUSED;
        return error_set(error, ERROR_UNAVAILABLE, "the cloud answered with status %d",
                         response->status);
    }
    memcpy(ec2->code, refusal.code, sizeof(ec2->code));
    /* A status of 500 means that nobody knows, whatever its body says. */
    ec2->failure = response->status >= 500 && refusal.failure == FLEET_REFUSED ? FLEET_UNCERTAIN
                                                                               : refusal.failure;
    if (aws_explain(text_of(refusal.code), error))
        return -1;
    return error_set(error,
                     ec2->failure == FLEET_REFUSED || ec2->failure == FLEET_LIMIT
                         ? ERROR_REFUSED
                         : ERROR_UNAVAILABLE,
                     "the cloud says %s: %s", refusal.code, refusal.message);
}

static int call(struct ec2 *ec2, const char *action, struct buffer *body,
                struct http_response *response, struct error *error)
{
    const struct http_signing signing = aws_signing(&ec2->credentials, "ec2");
    const struct http_header headers[] = {
        {"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
        {"x-amz-security-token", ec2->credentials.session_token},
    };
    const struct http_call_options options = {
        .method = "POST",
        .url = ec2->url,
        .headers = headers,
        .header_count = ec2->credentials.session_token[0] ? 2 : 1,
        .body = buffer_text(body),
        .response_max = ANSWER_MAX,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_MS,
        .signing = &signing,
        .is_stopped = is_stopped,
        .context = ec2,
    };
    ec2->failure = FLEET_UNCERTAIN;
    if (buffer_check(body, error) < 0)
        return -1;
    if (http_session_call(ec2->session, &options, response, error) < 0)
        return error_wrap(error, "ask the cloud");
    if (response->status != 200)
        return refuse(ec2, response, error);
    if (!ec2_answer_is_whole(buffer_text(&response->body), action))
        return error_set(error, ERROR_CORRUPT, "the cloud's answer to %s is cut off", action);
    return 0;
}

/* ---- Instances ------------------------------------------------------------------------------- */

static void add_tags(const struct ec2 *ec2, const struct ec2_launch *launch, struct buffer *body)
{
    char name[2 * FLEET_NAME_SIZE], member[24], job[24];
    snprintf(name, sizeof(name), "souk-%.12s-%" PRIu64, ec2->market, launch->member);
    snprintf(member, sizeof(member), "%" PRIu64, launch->member);
    snprintf(job, sizeof(job), "%" PRIu64, launch->job);
    const char *const tags[][2] = {{EC2_TAG_MARKET, ec2->market},
                                   {EC2_TAG_RUN, launch->run},
                                   {EC2_TAG_MEMBER, member},
                                   {"Name", name},
                                   {EC2_TAG_JOB, job}};
    const size_t count = sizeof(tags) / sizeof(*tags) - (launch->job ? 0 : 1);
    add_string(body, "TagSpecification.1.ResourceType", "instance");
    for (size_t i = 0; i < count; i++) {
        char key[64];
        snprintf(key, sizeof(key), "TagSpecification.1.Tag.%zu.Key", i + 1);
        add_string(body, key, tags[i][0]);
        snprintf(key, sizeof(key), "TagSpecification.1.Tag.%zu.Value", i + 1);
        add_string(body, key, tags[i][1]);
    }
}

static void add_market(const struct ec2_launch *launch, struct buffer *body)
{
    char price[40];
    const int64_t usd_micro = launch->candidate.usd_micro_per_hour;
    snprintf(price, sizeof(price), "%" PRId64 ".%06" PRId64, usd_micro / 1000000,
             usd_micro % 1000000);
    add_string(body, "InstanceMarketOptions.MarketType", "spot");
    add_string(body, "InstanceMarketOptions.SpotOptions.SpotInstanceType", "one-time");
    add_string(body, "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior", "terminate");
    add_string(body, "InstanceMarketOptions.SpotOptions.MaxPrice", price);
}

static int add_user_data(struct buffer *body, struct text user_data, struct error *error)
{
    char encoded[sodium_base64_ENCODED_LEN(EC2_USER_DATA_MAX, sodium_base64_VARIANT_ORIGINAL)];
    if (user_data.size > EC2_USER_DATA_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the boot script is longer than %d bytes",
                         EC2_USER_DATA_MAX);
    sodium_bin2base64(encoded, sizeof(encoded), (const unsigned char *)user_data.data,
                      user_data.size, sodium_base64_VARIANT_ORIGINAL);
    add_string(body, "UserData", encoded);
    sodium_memzero(encoded, sizeof(encoded));
    return 0;
}

int ec2_run(struct ec2 *ec2, const struct ec2_launch *launch, struct ec2_instance *out_instance,
            struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer body AUTO_BUFFER;
    http_response_init(&response);
    begin(&body, "RunInstances");
    add_string(&body, "ImageId", launch->image);
    add_string(&body, "InstanceType", launch->candidate.type);
    add_string(&body, "MinCount", "1");
    add_string(&body, "MaxCount", "1");
    add_string(&body, "ClientToken", launch->token);
    add_string(&body, "SecurityGroupId.1", launch->group);
    if (launch->candidate.zone[0])
        add_string(&body, "Placement.AvailabilityZone", launch->candidate.zone);
    add_string(&body, "InstanceInitiatedShutdownBehavior", "terminate");
    add_string(&body, "MetadataOptions.HttpTokens", "required");
    if (launch->is_spot)
        add_market(launch, &body);
    add_tags(ec2, launch, &body);
    ec2->failure = FLEET_REFUSED;
    if (add_user_data(&body, launch->user_data, error) < 0 ||
        call(ec2, "RunInstances", &body, &response, error) < 0)
        return -1;
    struct ec2_instances instances = {.rest = buffer_text(&response.body)};
    if (!ec2_answer_next(&instances, out_instance)) {
        ec2->failure = FLEET_UNCERTAIN;
        return error_set(error, ERROR_CORRUPT, "the cloud's answer names no instance");
    }
    return 0;
}

int ec2_terminate(struct ec2 *ec2, const char *instance, struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer body AUTO_BUFFER;
    http_response_init(&response);
    begin(&body, "TerminateInstances");
    add_string(&body, "InstanceId.1", instance);
    return call(ec2, "TerminateInstances", &body, &response, error);
}

static int list_page(struct ec2 *ec2, char token[TOKEN_SIZE], struct buffer *out_instances,
                     struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer body AUTO_BUFFER;
    char size[16];
    http_response_init(&response);
    begin(&body, "DescribeInstances");
    snprintf(size, sizeof(size), "%d", PAGE_SIZE);
    add_string(&body, "Filter.1.Name", "tag:" EC2_TAG_MARKET);
    add_string(&body, "Filter.1.Value.1", ec2->market);
    add_string(&body, "MaxResults", size);
    if (token[0])
        add_string(&body, "NextToken", token);
    if (call(ec2, "DescribeInstances", &body, &response, error) < 0)
        return -1;
    struct ec2_instances instances = {.rest = buffer_text(&response.body)};
    for (struct ec2_instance instance; ec2_answer_next(&instances, &instance);)
        buffer_append(out_instances, &instance, sizeof(instance));
    xml_element_copy(buffer_text(&response.body), "nextToken", token, TOKEN_SIZE);
    return buffer_check(out_instances, error);
}

int ec2_list(struct ec2 *ec2, struct buffer *out_instances, struct error *error)
{
    char token[TOKEN_SIZE] = "";
    for (int page = 0; page < PAGES_MAX; page++) {
        if (list_page(ec2, token, out_instances, error) < 0)
            return -1;
        if (!token[0])
            return 0;
    }
    return error_set(error, ERROR_CORRUPT, "the cloud's list has no end");
}

/* ---- The security group ---------------------------------------------------------------------- */

static int look_for_group(struct ec2 *ec2, const char *name, char out_group[FLEET_NAME_SIZE],
                          struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer body AUTO_BUFFER;
    struct ec2_group group;
    http_response_init(&response);
    begin(&body, "DescribeSecurityGroups");
    add_string(&body, "Filter.1.Name", "group-name");
    add_string(&body, "Filter.1.Value.1", name);
    out_group[0] = '\0';
    if (call(ec2, "DescribeSecurityGroups", &body, &response, error) < 0)
        return -1;
    if (!ec2_answer_group(buffer_text(&response.body), &group))
        return 0;
    if (group.lets_in) {
        ec2->failure = FLEET_REFUSED;
        return error_set(error, ERROR_REFUSED,
                         "the security group \"%s\" (%s) lets something in: take its inbound rules "
                         "away, lenders need none",
                         name, group.id);
    }
    memcpy(out_group, group.id, sizeof(group.id));
    return 0;
}

static int make_group(struct ec2 *ec2, const char *name, char out_group[FLEET_NAME_SIZE],
                      struct error *error)
{
    struct http_response response AUTO_HTTP_RESPONSE;
    struct buffer body AUTO_BUFFER;
    http_response_init(&response);
    begin(&body, "CreateSecurityGroup");
    add_string(&body, "GroupName", name);
    add_string(&body, "GroupDescription", "souk-lenders-nothing-comes-in");
    if (call(ec2, "CreateSecurityGroup", &body, &response, error) < 0)
        /* Another that made it in between. */
        return strcmp(ec2->code, "InvalidGroup.Duplicate") == 0
                   ? look_for_group(ec2, name, out_group, error)
                   : -1;
    if (!xml_element_copy(buffer_text(&response.body), "groupId", out_group, FLEET_NAME_SIZE)[0]) {
        ec2->failure = FLEET_UNCERTAIN;
        return error_set(error, ERROR_CORRUPT, "the cloud's answer names no security group");
    }
    return 0;
}

int ec2_find_group(struct ec2 *ec2, char out_group[FLEET_NAME_SIZE], struct error *error)
{
    char name[2 * FLEET_NAME_SIZE];
    snprintf(name, sizeof(name), "souk-%s", ec2->market);
    if (look_for_group(ec2, name, out_group, error) < 0)
        return -1;
    return out_group[0] ? 0 : make_group(ec2, name, out_group, error);
}
