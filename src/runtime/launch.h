/*
 * Launch: how a borrower's program starts on a set of ranks: the variables of its environment, the
 * files that must lie there, which ranks run the script and whether the job waits for all of them.
 *
 * One file for each framework: torch.c, tensorflow.c, spark.c, mpi.c. Pure: a round in, a launch
 * out. A round is one start of the whole job; one that is restarted begins another, perhaps with
 * other members.
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The Python package and libsouk in each sandbox: "souk/sync.py", "souk/libsouk.so.0". */
#define LAUNCH_SDK       "/.souk/sdk"
#define LAUNCH_INTERFACE "souk0" /* the job network's device in each sandbox */

enum { LAUNCH_VARIABLES_MAX = 24, LAUNCH_FILES_MAX = 12, LAUNCH_ADDRESS_SIZE = 16 };

struct launch_member {
    uint64_t rank;    /* of its lease: after others are lost it is not its place in the round */
    uint32_t address; /* in the job's network, in host byte order */
    int64_t cores_milli;
    int64_t gpus_milli;
};

struct launch_round {
    uint64_t job;
    uint64_t index;                      /* rounds before this one */
    uint64_t max_restarts;               /* of a script that fails */
    const struct launch_member *members; /* by rank */
    size_t member_count;
    size_t own;                 /* which of them this is */
    int64_t ram_bytes;          /* of this one's lease */
    uint64_t parameter_servers; /* of tensorflow */
    uint64_t processes;  /* of each member with torch; 0: one; UINT64_MAX: one for each GPU */
    size_t local;        /* which of its own processes this is */
    const char *folder;  /* absolute: the files will lie there */
    const char *secret;  /* of the launcher, in hex; of the first member */
    const char *program; /* souk itself, as it is found in the sandbox */
};

struct launch_file {
    const char *name; /* may be in a folder: "bin/program" */
    struct text content;
    bool is_program;
};

struct launch {
    char *variables[LAUNCH_VARIABLES_MAX]; /* "NAME=value" */
    size_t variable_count;
    struct launch_file files[LAUNCH_FILES_MAX];
    size_t file_count;
    struct text before;   /* shell text that goes before the script; empty: none */
    struct text instead;  /* what this member runs in place of it; empty: the script */
    size_t process_count; /* that the member starts, each with a launch of its own */
    bool runs_script;     /* this member does; else it waits for what it is told to start */
};

struct launch_kind {
    const char *name;             /* of the runtime */
    const char *label, *software; /* that its machines need, unless the job brings it */
    bool is_led;  /* the job is done when the first member's script is, whatever the others do */
    bool goes_on; /* when a rank is lost, the others do, unless the job says otherwise */
    void (*write)(struct arena *arena, const struct launch_round *round, struct launch *out);
};

/* NULL: it is no framework, its ranks start one by one. */
const struct launch_kind *launch_find(struct text runtime);

/* Whether the job is done when its first member is; tensorflow with parameter servers is, too. */
bool launch_is_led(const struct launch_kind *kind, uint64_t parameter_servers);

/* All that it gives lives in the arena. */
void launch_write(const struct launch_kind *kind, struct arena *arena,
                  const struct launch_round *round, struct launch *out);

/* --- for the kinds --- */

void launch_add(struct launch *launch, struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "10.77.0.1" */
const char *launch_address(uint32_t address, char out[LAUNCH_ADDRESS_SIZE]);

extern const struct launch_kind launch_mpi, launch_spark, launch_tensorflow, launch_torch;
