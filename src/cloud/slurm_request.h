/*
 * Slurm request: what a waiting job asks for, read from the words it asked in. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How many tasks an array's expression names, like "0-9:2,11%3", `most` at most; 1 for none. */
uint32_t slurm_array_count(const char *tasks, uint32_t most);

/* Whether a node of these features could serve a job that asks for `wanted`. Only words joined by
 * '&' or ',' are looked at; anything else could be. Both may be NULL. */
bool slurm_features_could(const char *features, const char *wanted);
