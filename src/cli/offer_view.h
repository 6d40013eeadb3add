/*
 * Offer view: offers for people: as a table, one with all its terms, and their state in words.
 */
#pragma once

#include "cli/cli.h"
#include "client/api.h"

/* Whether it takes leases now: "open", "closed until 2026-11-16 17:00:00Z", "paused"; of an open
 * one whose machine is not there "offline" or "unreachable". */
const char *offer_view_state(struct arena *arena, const struct api_offer *offer);

/* "open", "closed until 2026-11-16 17:00:00Z", "paused". */
const char *offer_view_state_words(struct arena *arena, struct text state, int64_t until_ms);

/* `offers` has struct api_offer. */
void offer_view_list(const struct cli *cli, const struct json_array *offers);

void offer_view_print(const struct cli *cli, const struct api_offer *offer);
