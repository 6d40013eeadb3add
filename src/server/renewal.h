/*
 * Renewal: weekly schedules are expanded to UTC spans 8 weeks ahead; this expands them again while
 * at least three are left, so that new rules of daylight saving are met in time.
 *
 * The rows of offers say when each is due; a timer waits for the first of them. Main thread.
 */
#pragma once

struct server;
struct renewal;

struct renewal *renewal_new(struct server *server);
void renewal_free(struct renewal *renewal); /* NULL is fine */

/* An offer was made or changed: it may be due before what is waited for. */
void renewal_wake(struct renewal *renewal);
