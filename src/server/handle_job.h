/* What the handlers of jobs and of their results share. */
#pragma once

#include "server/server_internal.h"

/* The caller's own job by the path's {id}; replies itself and returns NULL otherwise: another's job
 * is not told from none. */
const struct store_value *handle_job_find(struct server *server, struct http_request *request);

/* A job's leases, the parameter server first, then by rank. */
struct query_rows;
MUST_CHECK int handle_job_leases(struct server *server, struct arena *arena, uint64_t job,
                                 struct query_rows *out_rows, struct error *error);

/* The command of a spec, with the spec's canonical JSON, in the call's arena. */
struct call;
struct job_spec;
struct job_request;
MUST_CHECK int handle_job_request(struct call *call, const struct job_spec *spec,
                                  struct job_request *out_request, struct error *error);
/* What its parameter servers alone would cost, at the prices of now. Core thread. */
struct core;
struct match_quote handle_quote_servers(const struct core *core, const struct job_request *request,
                                        int64_t now_ms);
