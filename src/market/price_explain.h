/*
 * Price explain: a price and its last update in sentences and sums that a person can redo by hand.
 */
#pragma once

#include "base/buffer.h"
#include "market/price_rule.h"

/*
 * One line, no line end: "core 18-24: 0.023009 = level 0.019550 x evening 1.177". Says so when the
 * price is not the product because a bound or the lenders' lowest minimum holds it.
 */
void price_explain_price(const struct price_board *board, enum price_resource resource, int of_day,
                         int64_t price_micro, struct buffer *out);

/*
 * One line, no line end: "412.000 core-h wanted by 31 borrowers (worth 22.000 equal ones), 390.000
 * lent; 90 % of that is 351.000; wanted/target 1.174 -> level +6.8 %".
 */
void price_explain_update(const struct price_working *working, struct buffer *out);

/* The sums of the update, several lines that start with `indent` and end with a line end. */
void price_explain_sums(const struct price_working *working, const char *indent,
                        struct buffer *out);
