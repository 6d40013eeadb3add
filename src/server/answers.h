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
 * anything else calls answers_forget, and its answer is sent and not kept; or it knows what moves
 * with what it asks for, notes that, and takes a draft along until the core has answered. Answers
 * carry an ETag, and who still has one is told so (304). Main thread.
 */
#pragma once

#include "base/clock.h"
#include "server/version.h"
#include "server/view.h"

struct answers;
struct answer_draft;

struct answers *answers_new(const struct versions *versions, const struct clock *clock,
                            size_t bytes_max);
void answers_free(struct answers *answers); /* NULL is fine */

/* True: the request was answered. */
bool answers_reply(struct answers *answers, struct http_request *request);
/* Sends with status 200, as view_answer_send, and keeps the answer if it may. */
void answers_send(struct answers *answers, struct view_answer *answer,
                  struct http_request *request);
/* The same for one of very many that are each asked for seldom: kept packed (packer.h), only while
 * there is room, and the first to go, until it is asked for again. */
void answers_send_minor(struct answers *answers, struct view_answer *answer,
                        struct http_request *request);
/* The answer under way holds before this instant only. */
void answers_until(struct answers *answers, int64_t until_ms);
/* The answer under way is not to be kept. */
void answers_forget(struct answers *answers);

/* What the handler is about to read; nothing when no answer is under way. NULL is fine. */
void answers_note(struct answers *answers, const struct store_query *query);
void answers_note_key(struct answers *answers, enum table table, uint64_t key);
void answers_note_prices(struct answers *answers);

/* The answer under way, to be made by others while further requests are answered; all it will be
 * made of is noted already. In the arena; NULL when it is not to be kept. */
struct answer_draft *answers_draft(struct answers *answers, struct arena *arena);
/* It holds from when the draft was made to before this instant. */
void answer_draft_until(struct answer_draft *draft, int64_t until_ms);
void answers_send_draft(struct answers *answers, const struct answer_draft *draft,
                        struct view_answer *answer, struct http_request *request);

struct answers_counts {
    uint64_t hits, misses;
    uint64_t evictions; /* dropped while still true, to stay within the limit */
    uint64_t count, bytes;
};
struct answers_counts answers_counts(const struct answers *answers);
