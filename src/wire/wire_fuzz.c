/* Decodes any bytes as a run of frames whose payloads are read by a program made of their bytes. */
#include "base/assert.h"
#include "wire/frame.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAYLOAD_MAX = 4096 };

static void read_payload(struct text payload)
{
    struct wire_reader reader;
    wire_reader_init(&reader, payload);
    while (wire_reader_left(&reader) > 0) {
        uint64_t raw[4];
        struct text text = {0};
        switch (wire_get_u8(&reader) % 10) {
        case 0:
            wire_get_bool(&reader);
            break;
        case 1:
            wire_get_u16(&reader);
            break;
        case 2:
            wire_get_u32(&reader);
            break;
        case 3:
            wire_get_i64(&reader);
            break;
        case 4:
            wire_get_f32(&reader);
            break;
        case 5:
            wire_get_f64(&reader);
            break;
        case 6:
            text = wire_get_text(&reader, 64);
            ASSERT(text.size <= 64);
            break;
        case 7:
            wire_get_raw(&reader, raw, sizeof(raw));
            break;
        case 8:
            ASSERT(wire_get_count(&reader, 100, 2) <= wire_reader_left(&reader) / 2);
            break;
        default:
            wire_get_raw_in_place(&reader, wire_get_u8(&reader));
            break;
        }
        uint8_t sum = 0;
        for (size_t i = 0; i < text.size; i++)
            sum = (uint8_t)(sum + text.data[i]);
        ASSERT(text.size > 0 || sum == 0);
    }
    struct error error;
    ASSERT((wire_reader_finish(&reader, "payload", &error) < 0) == wire_reader_is_failed(&reader));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text left = {(const char *)data, size};
    struct frame frame;
    size_t frame_size;
    struct error error;
    while (frame_decode(left, PAYLOAD_MAX, &frame, &frame_size, &error) == 1) {
        ASSERT(frame_size == FRAME_HEADER_SIZE + frame.payload.size && frame_size <= left.size);
        read_payload(frame.payload);
        left = (struct text){left.data + frame_size, left.size - frame_size};
    }
    return 0;
}
