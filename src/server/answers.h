/*
 * Answers: what reads were answered, kept up to a limit and sent again as long as nothing they were
 * made of has changed (version.h). The least recently asked for goes first.
 *
 *     if (answers_reply(server->answers, request))
 *         return;
 *     ... rows by query.h alone, view_answer_begin, what writes it ...
 *     answers_send(server->answers, &answer, request);
 *
 * Between the two, query.h notes what is read. A handler that also asks the core, the clock or
 * anything else calls answers_forget, and its answer is sent and not kept. Answers carry an ETag,
 * and who still has one is told so (304). Main thread.
 */
#pragma once

#include "server/version.h"
#include "server/view.h"

struct answers;

struct answers *answers_new(const struct versions *versions, size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is fine */

/* True: the request was answered. */
bool answers_reply(struct answers *answers, struct http_request *request);
/* Sends with status 200, as view_answer_send, and keeps the answer if it may. */
void answers_send(struct answers *answers, struct view_answer *answer,
                  struct http_request *request);
/* The same for one of very many that are each asked for seldom: kept only while there is room, and
 * the first to go, until it is asked for again. */
void answers_send_minor(struct answers *answers, struct view_answer *answer,
                        struct http_request *request);
/* The answer under way is not to be kept. */
void answers_forget(struct answers *answers);

/* What the handler is about to read; nothing when no answer is under way. NULL is fine. */
void answers_note(struct answers *answers, const struct store_query *query);
void answers_note_key(struct answers *answers, enum table table, uint64_t key);

struct answers_counts {
    uint64_t hits, misses, count, bytes;
};
struct answers_counts answers_counts(const struct answers *answers);
