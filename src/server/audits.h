/*
 * Audits: the market's books proved while it runs, by a process of its own: `souk audit`, which
 * reads and changes nothing. One at a time; the last result is kept until the market stops.
 *
 * Main thread.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

struct server;
struct audits;

struct audits *audits_new(struct server *server);
/* Ends one that runs. NULL is fine. */
void audits_free(struct audits *audits);

/* Nothing more when one runs already. */
MUST_CHECK int audits_start(struct audits *audits, struct error *error);
/* {"state":"none|running|done|failed",...} */
void audits_write(const struct audits *audits, struct json_writer *writer);
