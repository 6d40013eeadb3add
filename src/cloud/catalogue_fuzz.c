/* Any bytes as a catalogue, and as the tables of a cloud: refused, or one that is read again the
 * same. */
#include "base/assert.h"
#include "cloud/catalogue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct catalogue *catalogue)
{
    AUTO(catalogue) struct catalogue *again = NULL;
    struct buffer written AUTO_BUFFER;
    struct error error;
    buffer_init(&written, CATALOGUE_SIZE_MAX);
    catalogue_write(catalogue, &written);
    ASSERT(catalogue_read(buffer_text(&written), &again, &error) == 0);
    ASSERT(catalogue_type_count(again) == catalogue_type_count(catalogue));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    AUTO(catalogue) struct catalogue *tables = NULL;
    const struct text bytes = {(const char *)data, size};
    struct catalogue_aws aws = {
        .csv = bytes, .region = "us-east-1", .date = "2026-08-22", .source = "x"};
    struct error error;
    if (catalogue_read(bytes, &catalogue, &error) == 0)
        check_again(catalogue);
    if (text_cut(bytes, '\0', &aws.csv, &aws.spot_advisor) &&
        catalogue_read_aws(&aws, &tables, &error) == 0)
        check_again(tables);
    return 0;
}
