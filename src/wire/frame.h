/*
 * Frame: how messages lie on a link.
 *
 *     offset  size  field
 *          0     4  payload size, little-endian
 *          4     2  type, little-endian; its meaning belongs to the two ends
 *          6     2  reserved, 0
 *          8     -  payload
 *
 * Every link has a payload maximum; a header that announces more is an error before any of the
 * payload is stored.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEADER_SIZE = 8 };

struct frame {
    uint16_t type;
    struct text payload; /* borrowed from the bytes decoded */
};

/* Writes the header of a payload of `payload_size` bytes. */
void frame_header_encode(uint32_t payload_size, uint16_t type, uint8_t out[FRAME_HEADER_SIZE]);

/* CORRUPT when it breaks the rules: too large, reserved set. */
MUST_CHECK int frame_header_decode(const uint8_t header[FRAME_HEADER_SIZE], uint32_t payload_max,
                                   uint16_t *out_type, uint32_t *out_payload_size,
                                   struct error *error);

/*
 * Looks for one frame at the start of `bytes`. Returns 1 and the frame when it is whole, 0 when
 * more bytes are needed, -1 with CORRUPT when the header breaks the rules (too large, reserved
 * set). *out_size is the whole frame's size, header included, and is set with 1; with 0 it is set
 * too once the header is there, and 0 before.
 */
MUST_CHECK int frame_decode(struct text bytes, uint32_t payload_max, struct frame *out_frame,
                            size_t *out_size, struct error *error);

/* For the end of a stream: CORRUPT when bytes of an unfinished frame are left over. */
MUST_CHECK int frame_decode_end(struct text left_over, struct error *error);
