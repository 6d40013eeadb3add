/* Decodes any bytes as a packet and as a report; what decodes encodes to the same bytes. */
#include "base/assert.h"
#include "base/buffer.h"
#include "runtime/child_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report_read(struct arena *arena, struct text json)
{
    struct error error;
    struct worker_report worker = {0};
    struct server_report server = {0};
    if (json_read(arena, json, &worker_report_schema, &worker, &error) == 0)
        ASSERT(json_read(arena, json, &server_report_schema, &server, &error) < 0);
    else if (json_read(arena, json, &server_report_schema, &server, &error) == 0)
        ASSERT(server.workers.count <= CHILD_PEER_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct text packet = {(const char *)data, size};
    struct child_message message;
    struct error error;
    if (child_message_decode(arena, packet, &message, &error) < 0)
        return 0;
    if (message.kind == CHILD_REPORT)
        report_read(arena, message.report.json);
    struct buffer again AUTO_BUFFER;
    buffer_init(&again, CHILD_PACKET_MAX);
    child_message_encode(&again, &message);
    ASSERT(text_equal(buffer_text(&again), packet));
    return 0;
}
