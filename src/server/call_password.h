/*
 * Call password: a call that waits for a password to be hashed or checked on the way.
 *
 * When too many wait it is answered by 503 with Retry-After; when its client is gone meanwhile it
 * is dropped. Else `then` goes on with it, on the main thread.
 */
#pragma once

#include "server/call.h"
#include "server/password.h"

/* `result` lives as long as the call. */
typedef void call_hashed(struct call *call, struct http_request *request,
                         const struct password_request *result);

/* Both take the call. */
void call_hash_take(struct call *call, struct text password, call_hashed *then);
/* `stored` is an argon2id string, or empty when there is none to match. */
void call_check_take(struct call *call, struct text password, struct text stored,
                     call_hashed *then);
