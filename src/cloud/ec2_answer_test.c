#include "cloud/ec2_answer.h"
#include "testing/testing.h"

#define INSTANCE(id, state, more)                                                                  \
    "<item><instanceId>" id "</instanceId><imageId>ami-1</imageId><instanceState><code>16</code>"  \
    "<name>" state "</name></instanceState><instanceType>m5.large</instanceType>"                  \
    "<launchTime>2026-11-18T04:00:00.000Z</launchTime><placement><availabilityZone>us-east-1a"     \
    "</availabilityZone></placement><networkInterfaceSet><item><groupSet><item><groupId>sg-1"      \
    "</groupId></item></groupSet></item></networkInterfaceSet>" more "</item>"
#define TAGS                                                                                       \
    "<tagSet><item><key>souk-market</key><value>ab12</value></item><item><key>souk-run</key>"      \
    "<value>run-1</value></item><item><key>souk-member</key><value>7</value></item></tagSet>"

TEST(instances_of_all_reservations_come_one_after_the_other)
{
    const struct text xml = TEXT(
        "<DescribeInstancesResponse xmlns=\"http://ec2\"><requestId>1</requestId>"
        "<reservationSet><item><reservationId>r-1</reservationId><instancesSet>" INSTANCE(
            "i-1", "running", TAGS)
            INSTANCE(
                "i-2", "terminated",
                "<stateReason><code>"
                "Server.SpotInstanceTermination"
                "</code></stateReason>") "</instancesSet></item>"
                                         "<item><instancesSet>" INSTANCE(
                                             "i-3", "pending",
                                             "") "</instancesSet></item>"
                                                 "</reservationSet></DescribeInstancesResponse>\n");
    struct ec2_instances instances = {.rest = xml};
    struct ec2_instance instance;
    assert_true(ec2_answer_is_whole(xml, "DescribeInstances"));
    assert_true(ec2_answer_next(&instances, &instance));
    assert_string_equal(instance.listed.instance, "i-1");
    assert_string_equal(instance.listed.run, "run-1");
    assert_int_equal(instance.listed.member, 7);
    assert_true(instance.listed.is_alive && !instance.listed.is_interrupted);
    assert_string_equal(instance.type, "m5.large");
    assert_string_equal(instance.zone, "us-east-1a");
    assert_int_equal(instance.launched_ms, INT64_C(1794974400000));
    assert_true(ec2_answer_next(&instances, &instance));
    assert_string_equal(instance.listed.instance, "i-2");
    assert_true(!instance.listed.is_alive && instance.listed.is_interrupted);
    assert_int_equal(instance.listed.member, 0);
    assert_true(ec2_answer_next(&instances, &instance));
    assert_string_equal(instance.listed.instance, "i-3");
    assert_true(instance.listed.is_alive);
    assert_false(ec2_answer_next(&instances, &instance));
}

TEST(what_is_cut_off_has_fewer_instances_and_is_not_whole)
{
    const struct text xml =
        TEXT("<DescribeInstancesResponse><reservationSet><item><instancesSet>" INSTANCE(
            "i-1", "running", TAGS) "<item><instanceId>i-2");
    struct ec2_instances instances = {.rest = xml};
    struct ec2_instance instance;
    assert_false(ec2_answer_is_whole(xml, "DescribeInstances"));
    assert_false(ec2_answer_next(&instances, &instance));
}

static enum fleet_failure failure_of(const char *code)
{
    char xml[256];
    struct ec2_refusal refusal;
    snprintf(xml, sizeof(xml),
             "<Response><Errors><Error><Code>%s</Code><Message>a &lt;b&gt;</Message></Error>"
             "</Errors><RequestID>1</RequestID></Response>",
             code);
    assert_true(ec2_answer_refusal(text_of(xml), &refusal));
    assert_string_equal(refusal.code, code);
    assert_string_equal(refusal.message, "a <b>");
    return refusal.failure;
}

TEST(refusals_say_what_to_do)
{
    struct ec2_refusal refusal;
    assert_int_equal(failure_of("InsufficientInstanceCapacity"), FLEET_CAPACITY);
    assert_int_equal(failure_of("RequestLimitExceeded"), FLEET_THROTTLED);
    assert_int_equal(failure_of("VcpuLimitExceeded"), FLEET_LIMIT);
    assert_int_equal(failure_of("AuthFailure"), FLEET_REFUSED);
    assert_int_equal(failure_of("InvalidAMIID.NotFound"), FLEET_REFUSED);
    assert_int_equal(failure_of("InvalidInstanceID.NotFound"), FLEET_ABSENT);
    assert_int_equal(failure_of("InternalError"), FLEET_UNCERTAIN);
    assert_false(ec2_answer_refusal(TEXT("<html>no</html>"), &refusal));
    assert_false(ec2_answer_refusal(TEXT(""), &refusal));
}

TEST(a_group_that_lets_something_in_is_seen)
{
    struct ec2_group group;
    assert_true(ec2_answer_group(
        TEXT("<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-1</groupId>"
             "<ipPermissions/><ipPermissionsEgress><item><ipProtocol>-1</ipProtocol></item>"
             "</ipPermissionsEgress></item></securityGroupInfo></DescribeSecurityGroupsResponse>"),
        &group));
    assert_string_equal(group.id, "sg-1");
    assert_false(group.lets_in);
    assert_true(ec2_answer_group(
        TEXT("<securityGroupInfo><item><groupId>sg-1</groupId><ipPermissions><item><ipProtocol>tcp"
             "</ipProtocol></item></ipPermissions></item></securityGroupInfo>"),
        &group));
    assert_true(group.lets_in);
    assert_false(ec2_answer_group(TEXT("<securityGroupInfo/>"), &group));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_of_all_reservations_come_one_after_the_other),
        cmocka_unit_test(what_is_cut_off_has_fewer_instances_and_is_not_whole),
        cmocka_unit_test(refusals_say_what_to_do),
        cmocka_unit_test(a_group_that_lets_something_in_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
