/* Whatever a cloud sends: texts end, and every instance has an id. */
#include "base/assert.h"
#include "cloud/ec2_answer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text xml = {(const char *)data, size};
    struct ec2_instances instances = {.rest = xml};
    struct ec2_instance instance;
    struct ec2_refusal refusal;
    struct ec2_group group;
    size_t count = 0;
    while (ec2_answer_next(&instances, &instance)) {
        ASSERT(instance.listed.instance[0]);
        ASSERT(strnlen(instance.listed.run, FLEET_NAME_SIZE) < FLEET_NAME_SIZE);
        ASSERT(++count <= size);
    }
    if (ec2_answer_refusal(xml, &refusal))
        ASSERT(refusal.code[0] &&
               strnlen(refusal.message, sizeof(refusal.message)) < sizeof(refusal.message));
    if (ec2_answer_group(xml, &group))
        ASSERT(group.id[0]);
    return 0;
}
