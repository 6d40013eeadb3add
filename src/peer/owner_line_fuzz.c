/* One line as a caller of the owner's socket sends it: what is taken keeps to its bounds, and reads
 * the same when it is written out again. */
#include "base/assert.h"
#include "peer/owner_line.h"

#include <inttypes.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > OWNER_LINE_REQUEST_MAX)
        return 0;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct owner_request request, again;
    struct error error;
    if (owner_request_read(arena, (struct text){(const char *)data, size}, &request, &error) < 0)
        return 0;
    ASSERT(request.verb >= 0 && request.verb < OWNER_VERB_COUNT);
    ASSERT(request.for_ms >= 0 && request.for_ms <= INT64_C(366) * 24 * 3600 * 1000);
    char written[OWNER_LINE_REQUEST_MAX];
    snprintf(written, sizeof(written), "{\"do\":\"%s\",\"for_ms\":%" PRId64 "}",
             owner_verb_name((enum owner_verb)request.verb), request.for_ms);
    ASSERT(owner_request_read(arena, text_of(written), &again, &error) == 0);
    ASSERT(again.verb == request.verb && again.for_ms == request.for_ms);
    return 0;
}
