/*
 * Password: the rules for one, and argon2id hashing on a thread of its own.
 *
 * A hash takes 64 MiB and about 90 ms of a core (docs/security.md has the measurement), so it is
 * never made on the loop or the core thread, and only one at a time: a flood of sign-ins costs at
 * most that memory and one core, and what does not fit the queue is refused at once.
 *
 * Hashing and checking an unknown name take the same time: a check without a hash to compare with
 * runs against one that nothing matches.
 */
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PASSWORD_SIZE_MIN = 10,
    PASSWORD_SIZE_MAX = 256,
    PASSWORD_HASH_SIZE = 128, /* "$argon2id$v=19$m=65536,t=3,p=1$...", with the zero byte */
};

/* INVALID, saying what to do: the length, UTF-8, the account's name, one of those tried first. */
MUST_CHECK int password_check(struct text password, struct text name, struct error *error);
/* password_common.c: one of the most used passwords of the length we take, whatever its case, or a
 * short piece or a run of neighbouring characters over and over. */
bool password_is_common(struct text password);

struct passwords;

struct password_request {
    struct list_node node; /* the worker's */
    size_t size;
    char secret[PASSWORD_SIZE_MAX]; /* wiped once it was used */
    bool is_check;                  /* compare with `hash`; else make one */
    /* Of a check: what to compare with; "" for a name that is not known. Else the result. */
    char hash[PASSWORD_HASH_SIZE];
    bool is_match;     /* of a check */
    bool is_exhausted; /* there was no memory to hash with; nothing else is set */
    /* On the loop, once. The request is the callee's again. */
    void (*on_done)(struct password_request *request);
};

struct passwords_options {
    struct loop *loop;   /* where on_done runs */
    uint32_t queue_max;  /* 0: 16, about a second and a half of work */
    uint64_t passes;     /* of argon2id; 0: 3 */
    size_t memory_bytes; /* of argon2id; 0: 64 MiB */
};

/* Starts the thread. */
MUST_CHECK int passwords_open(const struct passwords_options *options,
                              struct passwords **out_passwords, struct error *error);
/* Finishes the hash being made and hands every request back to the loop, unused ones as exhausted.
 * NULL is fine. */
void passwords_free(struct passwords *passwords);
DEFINE_AUTO(passwords);

/* Fills in the secret; false when it is too long to be a password. */
bool password_request_set(struct password_request *request, struct text secret);
/* From the loop's thread. UNAVAILABLE, leaving the request the caller's, when the queue is full
 * or there is none any more (NULL): the market is stopping. */
MUST_CHECK int passwords_submit(struct passwords *passwords, struct password_request *request,
                                struct error *error);
