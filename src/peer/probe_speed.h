/*
 * Probe, speed: how fast one core multiplies and adds, and copies memory.
 *
 * The first is a short loop of fused multiply-adds in the widest vectors the processor has
 * (AVX-512, AVX2 with FMA, or what the compiler takes by default), because a training step is
 * mostly that. It touches no maths library. Both take the best of several rounds by CPU time: a
 * busy machine is not a slow one.
 */
#pragma once

#include <stdint.h>

double probe_gflops(void); /* one core, single precision; 25 ms of CPU time */
/* One core; about 50 ms of CPU time, and for that long up to 128 MiB. 0: there was no memory. */
int64_t probe_ram_bytes_per_s(int64_t ram_bytes);
