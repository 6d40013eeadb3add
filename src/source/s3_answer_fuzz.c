/* Whatever a server sends: what is found lies within it. */
#include "base/assert.h"
#include "source/s3_answer.h"
#include "source/xml_element.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct text part, const char *data, size_t size)
{
    ASSERT(part.data >= data && part.size <= size &&
           (size_t)(part.data - data) <= size - part.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text xml = {(const char *)data, size};
    struct text rest = xml;
    struct text found;
    struct s3_object object;
    if (xml_element_find(xml, "Code", &found))
        check_within(found, xml.data, size);
    while (s3_answer_next(&rest, &object)) {
        check_within(object.key, xml.data, size);
        check_within(rest, xml.data, size);
    }
    return 0;
}
