/* Whatever a name node sends is read, or refused as what it is not. */
#include "base/assert.h"
#include "source/hdfs_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct text json = {(const char *)data, size};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct hdfs_status status;
    const struct hdfs_status *list;
    size_t count;
    if (hdfs_answer_status(arena, json, &status, &error) < 0)
        ASSERT(error.code == ERROR_CORRUPT);
    if (hdfs_answer_list(arena, json, &list, &count, &error) < 0)
        ASSERT(error.code == ERROR_CORRUPT);
    else
        ASSERT(count <= HDFS_LIST_MAX);
    const struct text exception = hdfs_answer_exception(arena, json);
    ASSERT(text_is_plain(exception));
    return 0;
}
