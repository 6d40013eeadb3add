#include "market/suspicion.h"

static void remove_at(struct suspicion *suspicion, size_t at)
{
    suspicion->reports[at] = suspicion->reports[--suspicion->report_count];
}

static void forget_old(struct suspicion *suspicion, int64_t now_ms)
{
    for (size_t i = suspicion->report_count; i-- > 0;)
        if (now_ms - suspicion->reports[i].last_ms > SUSPICION_KEPT_MS)
            remove_at(suspicion, i);
}

static struct suspicion_report *find(struct suspicion *suspicion, uint64_t job)
{
    for (size_t i = 0; i < suspicion->report_count; i++)
        if (suspicion->reports[i].reporter.job == job)
            return &suspicion->reports[i];
    return NULL;
}

static size_t oldest(const struct suspicion *suspicion)
{
    size_t at = 0;
    for (size_t i = 1; i < suspicion->report_count; i++)
        if (suspicion->reports[i].last_ms < suspicion->reports[at].last_ms)
            at = i;
    return at;
}

bool suspicion_report(struct suspicion *suspicion, const struct suspicion_reporter *reporter,
                      int64_t now_ms)
{
    forget_old(suspicion, now_ms);
    struct suspicion_report *known = find(suspicion, reporter->job);
    if (known && now_ms - known->last_ms < SUSPICION_AGAIN_MS)
        return false;
    if (known) {
        known->reporter = *reporter;
        known->last_ms = now_ms;
    } else {
        if (suspicion->report_count == SUSPICION_REPORTS_MAX)
            remove_at(suspicion, oldest(suspicion));
        suspicion->reports[suspicion->report_count++] =
            (struct suspicion_report){*reporter, now_ms, now_ms};
    }
    if (suspicion->is_asked)
        return false;
    suspicion->is_asked = true;
    suspicion->asked_ms = now_ms;
    return true;
}

void suspicion_withdraw(struct suspicion *suspicion, uint64_t job)
{
    for (size_t i = suspicion->report_count; i-- > 0;)
        if (suspicion->reports[i].reporter.job == job)
            remove_at(suspicion, i);
}

static bool testifies(const struct suspicion_report *report, const struct suspicion_facts *facts)
{
    return report->reporter.can_testify && facts->now_ms - report->since_ms >= facts->silence_ms;
}

static bool is_mute(const struct suspicion *suspicion, const struct suspicion_facts *facts)
{
    uint64_t first_account = 0;
    if (facts->is_held)
        return false;
    for (size_t i = 0; i < suspicion->report_count; i++) {
        const struct suspicion_report *report = &suspicion->reports[i];
        if (!testifies(report, facts))
            continue;
        if (first_account && report->reporter.account != first_account)
            return true;
        first_account = report->reporter.account;
    }
    return false;
}

enum suspicion_verdict suspicion_judge(struct suspicion *suspicion,
                                       const struct suspicion_facts *facts)
{
    const bool was_asked = suspicion->is_asked;
    forget_old(suspicion, facts->now_ms);
    if (was_asked && facts->heard_ms < suspicion->asked_ms) {
        if (facts->now_ms - suspicion->asked_ms < facts->silence_ms / 2)
            return SUSPICION_WAITS;
        suspicion->is_asked = false;
        return SUSPICION_SILENT;
    }
    suspicion->is_asked = false;
    if (is_mute(suspicion, facts)) {
        suspicion->report_count = 0;
        return SUSPICION_MUTE;
    }
    return was_asked ? SUSPICION_REFUTED : SUSPICION_NONE;
}
