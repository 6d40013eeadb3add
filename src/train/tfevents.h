/*
 * TF events: scalars in the event files that TensorBoard reads, one file of a run.
 *
 *     u64 size, u32 masked CRC-32C of those 8 bytes, the event (protobuf), u32 masked CRC-32C of it
 *
 * all little-endian, one record after the other. Every record is whole on disk once the call
 * returns, so that a reader may follow.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"

#include <stddef.h>
#include <stdint.h>

struct tfevents;

struct tfevents_scalar {
    const char *tag; /* "test/loss": what stands before the slash is a group */
    double value;
};

/* Makes FOLDER and those above it where they are missing, and a new file in it. */
MUST_CHECK int tfevents_open(const char *folder, int64_t utc_ms, struct tfevents **out_events,
                             struct error *error);
void tfevents_free(struct tfevents *events); /* NULL is fine */
DEFINE_AUTO(tfevents);

const char *tfevents_path(const struct tfevents *events);

/* Those that are finite, as one event. */
MUST_CHECK int tfevents_write(struct tfevents *events, int64_t utc_ms, uint64_t step,
                              const struct tfevents_scalar *scalars, size_t count,
                              struct error *error);

/* The same into memory: the record that a file begins with, then events; one without a finite
 * scalar is left out. */
void tfevents_append_version(struct buffer *out, int64_t utc_ms);
void tfevents_append(struct buffer *out, int64_t utc_ms, uint64_t step,
                     const struct tfevents_scalar *scalars, size_t count);

/* The CRC-32C of the bytes, masked as the format has it. */
uint32_t tfevents_crc(const void *bytes, size_t size);
