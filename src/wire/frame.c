#include "wire/frame.h"

void frame_header_encode(uint32_t payload_size, uint16_t type, uint8_t out[FRAME_HEADER_SIZE])
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(payload_size >> (8 * i));
    out[4] = (uint8_t)type;
    out[5] = (uint8_t)(type >> 8);
    out[6] = 0;
    out[7] = 0;
}

int frame_header_decode(const uint8_t header[FRAME_HEADER_SIZE], uint32_t payload_max,
                        uint16_t *out_type, uint32_t *out_payload_size, struct error *error)
{
    const uint32_t payload_size = (uint32_t)header[0] | (uint32_t)header[1] << 8 |
                                  (uint32_t)header[2] << 16 | (uint32_t)header[3] << 24;
    if (payload_size > payload_max)
        return error_set(error, ERROR_CORRUPT, "frame of %u bytes is over the maximum of %u",
                         payload_size, payload_max);
    if (header[6] != 0 || header[7] != 0)
        return error_set(error, ERROR_CORRUPT, "frame sets its reserved bytes");
    *out_type = (uint16_t)(header[4] | header[5] << 8);
    *out_payload_size = payload_size;
    return 0;
}

int frame_decode(struct text bytes, uint32_t payload_max, struct frame *out_frame, size_t *out_size,
                 struct error *error)
{
    *out_size = 0;
    if (bytes.size < FRAME_HEADER_SIZE)
        return 0;
    uint16_t type;
    uint32_t payload_size;
    if (frame_header_decode((const uint8_t *)bytes.data, payload_max, &type, &payload_size, error) <
        0)
        return -1;
    *out_size = FRAME_HEADER_SIZE + (size_t)payload_size;
    if (bytes.size < *out_size)
        return 0;
    out_frame->type = type;
    out_frame->payload = (struct text){bytes.data + FRAME_HEADER_SIZE, payload_size};
    return 1;
}

int frame_decode_end(struct text left_over, struct error *error)
{
    if (left_over.size > 0)
        return error_set(error, ERROR_CORRUPT, "stream ended inside a frame, after %zu bytes of it",
                         left_over.size);
    return 0;
}
