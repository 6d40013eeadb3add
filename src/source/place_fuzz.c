/* Whatever somebody writes as an address: its parts lie within it, and a description is plain. */
#include "base/assert.h"
#include "source/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct text part, struct text whole)
{
    if (part.size)
        ASSERT(part.data >= whole.data && part.data + part.size <= whole.data + whole.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text address = {(const char *)data, size};
    char name[PLACE_NAME_SIZE];
    struct place place;
    struct error error;
    ASSERT(text_is_plain(text_of(place_describe(address, name))));
    if (place_parse(address, &place, &error) < 0) {
        ASSERT(error.code == ERROR_INVALID);
        return 0;
    }
    ASSERT(place_is_address(address));
    check_within(place.authority, address);
    check_within(place.path, address);
    check_within(place.query, address);
    check_within(place_file_name(&place), address);
    ASSERT(place.path.size == 0 || place.path.data[0] == '/');
    return 0;
}
