/*
 * Owner: watches the one whose machine this is, and says how much of it leases may have now.
 *
 * While leases run it looks five times a second; without any, every 15 seconds, for the market to
 * know. What a kernel says by itself (pressure on memory) is waited for. A pause by the owner's own
 * word holds whatever is watched, and over a restart of the daemon.
 */
#pragma once

#include "base/json.h"
#include "base/scope.h"
#include "net/loop.h"
#include "peer/guard.h"

struct owner;

enum { OWNER_PERIOD_MS = 200, OWNER_PERIOD_IDLE_MS = 15000 };

struct owner_options {
    struct loop *loop;
    const char *root;      /* "": this machine; see watch.h */
    const char *display;   /* of X11, as DISPLAY has it; NULL: none */
    const char *state_dir; /* a pause is kept there; NULL: nowhere */
    struct guard_limits limits;
    bool is_blind;   /* watch nothing: only the owner's word counts */
    bool is_metered; /* the owner says so of the network */
    /* CPU time of this program and its leases so far; falls when a lease ends. */
    int64_t (*our_cpu_ms)(void *context);
    /* What other programs use of the GPUs that leases have, in thousandths of the busiest;
     * GUARD_UNKNOWN: no lease has one, or it cannot be told. */
    int64_t (*others_gpu_milli)(void *context);
    /* Whether a lease has a GPU: its load is not others' then. */
    bool (*uses_gpu)(void *context);
    /* The level has changed, or whether new leases are taken. Not from inside owner_new. */
    void (*on_change)(void *context);
    void *context;
};

struct owner *owner_new(const struct owner_options *options);
void owner_free(struct owner *owner); /* NULL is fine */
DEFINE_AUTO(owner);

/* Whether leases run. The first one is looked after at once. */
void owner_set_working(struct owner *owner, bool is_working);

enum guard_level owner_level(const struct owner *owner);

/* What the owner said; the market is told. */
enum owner_word {
    OWNER_WORD_NONE,
    OWNER_WORD_PAUSE, /* said here, or here too */
    OWNER_WORD_PAUSE_REMOTELY,
    OWNER_WORD_DRAIN,
};
enum owner_word owner_word(const struct owner *owner);
/* Of a pause; 0: there is none, or it lasts until the owner resumes. */
int64_t owner_pause_left_ms(const struct owner *owner);
/* False: the owner uses the machine, or said so. */
bool owner_takes_leases(const struct owner *owner);

/* Where a word was said. What came through the market may be its own word, and undoes only what
 * came that way: not a pause or a drain said here, nor the waiting for quiet. */
enum owner_place { OWNER_HERE, OWNER_REMOTE, OWNER_PLACE_COUNT };

void owner_pause(struct owner *owner, enum owner_place place,
                 int64_t for_ms); /* 0: until owner_resume */
/* Said here it ends every pause, a drain too, and the waiting for quiet. */
void owner_resume(struct owner *owner, enum owner_place place);
void owner_drain(struct owner *owner);

/* Fields of an object that is open: level, cause, reason, readings. */
void owner_write(const struct owner *owner, struct json_writer *writer);
/* What can be watched here, one finding a line, for `souk lend --doctor`. */
void owner_doctor(const char *root, const char *display, struct buffer *out);
