/* What is asked of EC2, and what its answers come to, against a server that plays a script. */
#include "cloud/ec2.h"
#include "testing/scripted_server.h"
#include "testing/testing.h"

#include <stdlib.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define RUNNING                                                                                    \
    "<instancesSet><item><instanceId>i-1</instanceId><instanceState><name>pending</name>"          \
    "</instanceState></item></instancesSet>"

static struct scripted_server server;

static struct ec2 *ec2_of(const char *token)
{
    struct remote_credentials credentials = {.access_key = "AKID", .secret_key = "very secret"};
    static char url[64];
    snprintf(credentials.session_token, sizeof(credentials.session_token), "%s", token);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);
    return ec2_new(
        &(struct ec2_options){.credentials = &credentials, .endpoint_url = url, .market = "ab12"});
}

static const struct ec2_launch launch = {
    .image = "ami-1",
    .group = "sg-1",
    .token = "run-1-7-0",
    .run = "run-1",
    .member = 7,
    .job = 9,
    .candidate = {"m5.large", "us-east-1a", 43600},
    .is_spot = true,
    .user_data = {"#!/bin/sh\n", 10},
};

TEST(a_launch_has_all_it_needs)
{
    const struct scripted_answer script[] = {
        {OK_HEAD "<RunInstancesResponse>" RUNNING "</RunInstancesResponse>"}};
    struct error error;
    struct ec2_instance instance;
    scripted_start(&server, script, 1);
    AUTO(ec2) struct ec2 *ec2 = ec2_of("session");
    ASSERT_OK(ec2_run(ec2, &launch, &instance, &error));
    scripted_stop(&server);
    assert_string_equal(instance.listed.instance, "i-1");
    static const char *const parts[] = {
        "POST / HTTP/1.1\r\n",
        "Action=RunInstances&Version=2016-11-15",
        "&ImageId=ami-1&InstanceType=m5.large&MinCount=1&MaxCount=1&ClientToken=run-1-7-0",
        "&SecurityGroupId.1=sg-1&Placement.AvailabilityZone=us-east-1a",
        "&InstanceInitiatedShutdownBehavior=terminate",
        "&InstanceMarketOptions.MarketType=spot",
        "SpotOptions.MaxPrice=0.043600",
        "Tag.1.Key=souk-market&TagSpecification.1.Tag.1.Value=ab12",
        "Key=souk-member&TagSpecification.1.Tag.3.Value=7",
        "Key=souk-job&TagSpecification.1.Tag.5.Value=9",
        "&UserData=IyEvYmluL3NoCg%3D%3D",
        "x-amz-security-token: session\r\n",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (!strcasestr(server.asked[0], parts[i]))
            fail_msg("no \"%s\" in \"%s\"", parts[i], server.asked[0]);
    assert_null(strstr(server.asked[0], "very secret"));
}

TEST(a_list_goes_on_to_its_last_page)
{
    const struct scripted_answer script[] = {
        {OK_HEAD "<DescribeInstancesResponse>" RUNNING
                 "<nextToken>p+2</nextToken></DescribeInstancesResponse>"},
        {OK_HEAD "<DescribeInstancesResponse>" RUNNING "<nextToken/></DescribeInstancesResponse>"},
    };
    struct error error;
    struct buffer instances AUTO_BUFFER;
    buffer_init(&instances, 1 << 20);
    scripted_start(&server, script, 2);
    AUTO(ec2) struct ec2 *ec2 = ec2_of("");
    ASSERT_OK(ec2_list(ec2, &instances, &error));
    scripted_stop(&server);
    assert_int_equal(instances.size, 2 * sizeof(struct ec2_instance));
    assert_non_null(
        strstr(server.asked[0], "Filter.1.Name=tag%3Asouk-market&Filter.1.Value.1=ab12"));
    assert_null(strstr(server.asked[0], "NextToken"));
    assert_non_null(strstr(server.asked[1], "&NextToken=p%2B2"));
}

static void assert_failure(const char *answer, enum fleet_failure failure, const char *words)
{
    const struct scripted_answer script[] = {{answer}};
    struct error error;
    struct ec2_instance instance;
    scripted_start(&server, script, 1);
    AUTO(ec2) struct ec2 *ec2 = ec2_of("");
    assert_int_equal(ec2_run(ec2, &launch, &instance, &error), -1);
    scripted_stop(&server);
    if (ec2_failure(ec2) != failure || !strstr(error.message, words) ||
        strstr(error.message, "very secret"))
        fail_msg("%d: \"%s\" has no \"%s\"", (int)ec2_failure(ec2), error.message, words);
}

#define REFUSAL(status, code)                                                                      \
    "HTTP/1.1 " status "\r\nConnection: close\r\n\r\n<Response><Errors><Error><Code>" code         \
    "</Code><Message>words</Message></Error></Errors></Response>"

TEST(refusals_are_told_apart)
{
    assert_failure(REFUSAL("401 No", "AuthFailure"), FLEET_REFUSED, "AWS_ACCESS_KEY_ID");
    assert_failure(REFUSAL("500 No", "InsufficientInstanceCapacity"), FLEET_CAPACITY, "words");
    assert_failure(REFUSAL("503 No", "RequestLimitExceeded"), FLEET_THROTTLED, "words");
    assert_failure(REFUSAL("400 No", "VcpuLimitExceeded"), FLEET_LIMIT, "VcpuLimitExceeded");
    assert_failure(REFUSAL("400 No", "InvalidAMIID.NotFound"), FLEET_REFUSED, "InvalidAMIID");
    assert_failure(REFUSAL("500 No", "Something"), FLEET_UNCERTAIN, "Something");
    assert_failure("HTTP/1.1 502 Bad\r\nConnection: close\r\n\r\n<html>", FLEET_UNCERTAIN, "502");
    assert_failure(OK_HEAD "<RunInstancesResponse>" RUNNING, FLEET_UNCERTAIN, "cut off");
    assert_failure(OK_HEAD "<RunInstancesResponse></RunInstancesResponse>", FLEET_UNCERTAIN,
                   "names no instance");
    assert_failure("", FLEET_UNCERTAIN, "ask the cloud");
}

#define NO_GROUPS                                                                                  \
    OK_HEAD                                                                                        \
    "<DescribeSecurityGroupsResponse><securityGroupInfo/></DescribeSecurityGroupsResponse>"
#define OPEN_GROUP                                                                                 \
    OK_HEAD "<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-2</groupId>"     \
            "<ipPermissions><item/><item></item></ipPermissions></item></securityGroupInfo>"       \
            "</DescribeSecurityGroupsResponse>"

TEST(the_group_is_made_where_it_is_not_and_refused_where_it_is_open)
{
    const struct scripted_answer script[] = {
        {NO_GROUPS},
        {OK_HEAD "<CreateSecurityGroupResponse><groupId>sg-1</groupId>"
                 "</CreateSecurityGroupResponse>"},
        {OPEN_GROUP},
    };
    struct error error;
    char group[FLEET_NAME_SIZE];
    scripted_start(&server, script, 3);
    AUTO(ec2) struct ec2 *ec2 = ec2_of("");
    ASSERT_OK(ec2_find_group(ec2, group, &error));
    assert_string_equal(group, "sg-1");
    assert_non_null(strstr(server.asked[1], "GroupName=souk-ab12"));
    ASSERT_FAILS(ec2_find_group(ec2, group, &error), ERROR_REFUSED);
    scripted_stop(&server);
    assert_non_null(strstr(error.message, "lets something in"));
    assert_int_equal(ec2_failure(ec2), FLEET_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_has_all_it_needs),
        cmocka_unit_test(a_list_goes_on_to_its_last_page),
        cmocka_unit_test(refusals_are_told_apart),
        cmocka_unit_test(the_group_is_made_where_it_is_not_and_refused_where_it_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
