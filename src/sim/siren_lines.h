/*
 * Siren lines: how auto rehearses where a model is trained, whose losses follow no form.
 *
 * It tries schedules of functions in equal steps from one number to another: some constants, and as
 * many lines up as down, over a tenth or three tenths of the epochs there may be. The first run of
 * each is of the same episode; then the worse half is given up, and so on down to three. Each run
 * takes every memory in turn; how long its epochs take with each is fitted. Nothing of the world is
 * told.
 */
#pragma once

#include "learn/scheduler.h"
#include "sim/siren_rehearse.h"

/* The best of them; `history` gets every epoch. 0 functions when none reached the target. */
struct scheduler_decay siren_rehearse_lines(const struct siren_rehearsals *rehearsals,
                                            struct epoch_fit *history);
