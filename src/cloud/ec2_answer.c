#include "cloud/ec2_answer.h"

#include "base/instant.h"
#include "source/xml_element.h"

#include <stdio.h>
#include <string.h>

static void take_tag(struct text tag, struct ec2_instance *instance)
{
    char key[FLEET_NAME_SIZE], value[FLEET_NAME_SIZE];
    struct error error;
    xml_element_copy(tag, "key", key, sizeof(key));
    xml_element_copy(tag, "value", value, sizeof(value));
    if (strcmp(key, EC2_TAG_RUN) == 0)
        memcpy(instance->listed.run, value, sizeof(value));
    else if (strcmp(key, EC2_TAG_MEMBER) == 0 &&
             text_parse_u64(text_of(value), &instance->listed.member, &error) < 0)
        instance->listed.member = 0;
}

static bool read_instance(struct text item, struct ec2_instance *out)
{
    struct text state, reason, tags, tag;
    char name[32] = "", code[64] = "", launched[40] = "";
    struct error error;
    *out = (struct ec2_instance){0};
    if (!xml_element_copy(item, "instanceId", out->listed.instance,
                          sizeof(out->listed.instance))[0] ||
        !xml_element_find(item, "instanceState", &state) ||
        !xml_element_copy(state, "name", name, sizeof(name))[0])
        return false;
    /* Only the first two are billed; a stopped one can be started again by nobody but us. */
    out->listed.is_alive = strcmp(name, "pending") == 0 || strcmp(name, "running") == 0 ||
                           strcmp(name, "stopping") == 0 || strcmp(name, "stopped") == 0;
    xml_element_copy(item, "instanceType", out->type, sizeof(out->type));
    xml_element_copy(item, "availabilityZone", out->zone, sizeof(out->zone));
    xml_element_copy(item, "launchTime", launched, sizeof(launched));
    if (instant_parse(text_of(launched), &out->launched_ms, &error) < 0)
        out->launched_ms = 0;
    if (xml_element_find(item, "stateReason", &reason))
        xml_element_copy(reason, "code", code, sizeof(code));
    out->listed.is_interrupted = strcmp(code, "Server.SpotInstanceTermination") == 0 ||
                                 strcmp(code, "Server.SpotInstanceShutdown") == 0;
    if (xml_element_find(item, "tagSet", &tags))
        while (xml_element_cut(tags, "item", &tag, &tags))
            take_tag(tag, out);
    return true;
}

bool ec2_answer_next(struct ec2_instances *instances, struct ec2_instance *out_instance)
{
    struct text item;
    for (;;) {
        while (xml_element_cut(instances->set, "item", &item, &instances->set))
            if (read_instance(item, out_instance))
                return true;
        if (!xml_element_cut(instances->rest, "instancesSet", &instances->set, &instances->rest))
            return false;
    }
}

bool ec2_answer_is_whole(struct text xml, const char *action)
{
    char end[80];
    snprintf(end, sizeof(end), "</%sResponse>", action);
    return text_ends_with(text_trim(xml), text_of(end));
}

/* ---- Refusals -------------------------------------------------------------------------------- */

/* To add one: what it means, by the beginning of its code. What is not here is refused. */
static const struct meaning {
    const char *code;
    enum fleet_failure failure;
} meanings[] = {
    {"InsufficientInstanceCapacity", FLEET_CAPACITY},
    {"InsufficientHostCapacity", FLEET_CAPACITY},
    {"InsufficientCapacity", FLEET_CAPACITY},
    {"InsufficientFreeAddressesInSubnet", FLEET_CAPACITY},
    {"SpotMaxPriceTooLow", FLEET_CAPACITY},
    {"Unsupported", FLEET_CAPACITY}, /* this type in this zone */
    {"RequestLimitExceeded", FLEET_THROTTLED},
    {"Throttling", FLEET_THROTTLED},
    {"EC2ThrottledException", FLEET_THROTTLED},
    {"RequestThrottled", FLEET_THROTTLED},
    {"InstanceLimitExceeded", FLEET_LIMIT},
    {"VcpuLimitExceeded", FLEET_LIMIT},
    {"MaxSpotInstanceCountExceeded", FLEET_LIMIT},
    {"InvalidInstanceID.NotFound", FLEET_ABSENT},
    {"InternalError", FLEET_UNCERTAIN},
    {"InternalFailure", FLEET_UNCERTAIN},
    {"ServiceUnavailable", FLEET_UNCERTAIN},
    {"Unavailable", FLEET_UNCERTAIN},
};

bool ec2_answer_refusal(struct text xml, struct ec2_refusal *out_refusal)
{
    struct text problem;
    *out_refusal = (struct ec2_refusal){.failure = FLEET_REFUSED};
    if (!xml_element_find(xml, "Error", &problem) ||
        !xml_element_copy(problem, "Code", out_refusal->code, sizeof(out_refusal->code))[0])
        return false;
    xml_element_copy(problem, "Message", out_refusal->message, sizeof(out_refusal->message));
    for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
        if (strncmp(out_refusal->code, meanings[i].code, strlen(meanings[i].code)) == 0) {
            out_refusal->failure = meanings[i].failure;
            break;
        }
    return true;
}

bool ec2_answer_group(struct text xml, struct ec2_group *out_group)
{
    struct text groups, item, permissions, permission;
    *out_group = (struct ec2_group){0};
    if (!xml_element_find(xml, "securityGroupInfo", &groups) ||
        !xml_element_find(groups, "item", &item) ||
        !xml_element_copy(item, "groupId", out_group->id, sizeof(out_group->id))[0])
        return false;
    out_group->lets_in = xml_element_find(item, "ipPermissions", &permissions) &&
                         xml_element_find(permissions, "item", &permission);
    return true;
}
