/*
 * Inside of a fit: fit_speed.c (steps) and fit_learning.c (samples), which fit.c calls.
 */
#pragma once

#include "recommend/fit.h"

void fit_speed(struct fit *fit, const struct observation *observations, size_t count);
void fit_learning(struct fit *fit, const struct observation *observations, size_t count);
