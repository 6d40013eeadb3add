/*
 * Suspicion: what reports that a machine is silent lead to.
 *
 * A report proves nothing. It makes the market look: the machine is asked for a sign of life at
 * once, and one that gives none within half the time that silence may last is silent, sooner than
 * the market would have noticed by itself. One that answers is not, whoever says so.
 *
 * A machine may answer and yet do nothing. That is believed of two jobs of different accounts, each
 * of which had pushes of it accepted before and none for as long as silence may last since it
 * reported, unless the owner of the machine holds leases still by right.
 *
 * Pure: times are the caller's, in milliseconds of one clock that does not jump.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SUSPICION_REPORTS_MAX = 8,
    SUSPICION_AGAIN_MS = 5000, /* a job's next report counts after this */
    SUSPICION_KEPT_MS = 60000, /* what was reported longer ago is forgotten */
};

struct suspicion_reporter {
    uint64_t account;
    uint64_t job;
    bool can_testify; /* pushes of the machine were accepted in its job */
};

struct suspicion_report {
    struct suspicion_reporter reporter;
    int64_t since_ms, last_ms; /* the first and the last of its reports */
};

/* Zeroed: nobody has said anything. */
struct suspicion {
    struct suspicion_report reports[SUSPICION_REPORTS_MAX]; /* one for each job */
    size_t report_count;
    bool is_asked; /* for a sign of life */
    int64_t asked_ms;
};

/* True: the machine is to be asked for a sign of life now. */
bool suspicion_report(struct suspicion *suspicion, const struct suspicion_reporter *reporter,
                      int64_t now_ms);
/* A push of the machine was accepted in the job, or its lease there is over. */
void suspicion_withdraw(struct suspicion *suspicion, uint64_t job);

struct suspicion_facts {
    int64_t now_ms;
    int64_t heard_ms;   /* when anything came of the machine last */
    int64_t silence_ms; /* how long silence may last */
    bool is_held;       /* its owner holds leases still */
};

enum suspicion_verdict {
    SUSPICION_NONE,    /* nothing is open */
    SUSPICION_WAITS,   /* for a sign of life */
    SUSPICION_REFUTED, /* it came */
    SUSPICION_SILENT,  /* it did not */
    SUSPICION_MUTE,    /* it did, and the work is not done all the same */
};

/* REFUTED, SILENT and MUTE are said once. */
enum suspicion_verdict suspicion_judge(struct suspicion *suspicion,
                                       const struct suspicion_facts *facts);
