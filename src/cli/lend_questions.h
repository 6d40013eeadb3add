/*
 * Lend, questions: what `souk lend` asks at a terminal when it was told nothing: which market, how
 * much, when. Nothing is written before all are answered.
 */
#pragma once

#include "cli/cli.h"

/* In the command's arena. */
struct lend_answers {
    const char *server;
    const char *fingerprint; /* NULL: none */
    const char *code;
    const char *cores; /* "50%", or "3" */
    const char *share; /* "50%", of memory: the same part as of the cores */
    const char *when;  /* "always" */
};

struct lend_machine {
    const char *words; /* "4 cores, 15.6 GiB of memory, no GPU" */
    int64_t cores_milli;
    int64_t ram_bytes;
    const char *reaches; /* what a lease may over the network: "nothing" */
};

/*
 * 0, or CLI_EXIT_DECLINED when the one who was asked went away (Ctrl-D): it was said that nothing
 * was done.
 */
MUST_CHECK int lend_questions_ask(const struct cli *cli, const struct lend_machine *machine,
                                  struct lend_answers *out_answers, struct error *error);

/* Another name for this machine, as "taken" is another's; NULL when whoever was asked went away. */
const char *lend_questions_ask_name(const struct cli *cli, const char *taken);

/* The parts, for tests. */

/* An address, with or without its beginning, or a whole command with --server, --fingerprint and
 * --code. INVALID, in words for people. Leaves what it does not name. */
MUST_CHECK int lend_answer_market(struct arena *arena, struct text line,
                                  struct lend_answers *answers, struct error *error);
/* "50%", "3 cores", "half", "all"; "50" where so many cores are not there, for it may mean those.
 */
MUST_CHECK int lend_answer_share(struct arena *arena, struct text line, int64_t cores_milli,
                                 struct lend_answers *answers, struct error *error);
/* "vm-2" of "vm", "vm-3" of "vm-2". */
const char *lend_next_name(struct arena *arena, const char *taken);
/* "always", "nights", "off-hours", or a schedule's words. */
MUST_CHECK int lend_answer_when(struct arena *arena, struct text line, struct lend_answers *answers,
                                struct error *error);
