/*
 * Bucket: how much a lease may send and receive in a second.
 *
 * It holds a tenth of a second's worth. What is taken may go below zero, since a packet is whole
 * and what has arrived is there; then nothing more is read until the debt is paid off, so that in
 * the long run the rate holds. A small packet counts as more than its bytes: it costs as much work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUCKET_PACKET_MIN = 256 };

struct bucket {
    int64_t bytes_per_s;
    int64_t bytes;
    int64_t filled_ns;
};

void bucket_init(struct bucket *bucket, int64_t now_ns);
/* > 0 */
void bucket_set_rate(struct bucket *bucket, int64_t bytes_per_s);
void bucket_fill(struct bucket *bucket, int64_t now_ns);
void bucket_take(struct bucket *bucket, size_t size);
bool bucket_has_some(const struct bucket *bucket);
/* Until it has some again; -1: it has. */
int bucket_wait_ms(const struct bucket *bucket);
