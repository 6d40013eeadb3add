#include "cli/account_notice.h"

#include "cli/output.h"

#include <inttypes.h>

enum { NOTICE_COUNT = 2 };

#define TOLD_MS (INT64_C(90) * 24 * 3600 * 1000)

const char *account_notice(struct arena *arena, const struct api_account *account, int64_t now_ms)
{
    const char *when = output_instant(arena, account->dormant_step_ms);
    if (account->dormant_steps > NOTICE_COUNT)
        return arena_format(arena,
                            "nobody used it for long: %" PRId64
                            " times a part of what it had went back to the market, last on %s; "
                            "\"souk wallet statement\" shows them. Using it, as now, ends this",
                            account->dormant_steps - NOTICE_COUNT, when);
    if (account->dormant_steps > 0)
        return arena_format(arena,
                            "nobody used it for long: notice %" PRId64 " of %d came on %s, before "
                            "parts of what it has go back to the market. Using it, as now, ends "
                            "this",
                            account->dormant_steps, (int)NOTICE_COUNT, when);
    if (account->dormant_step_ms > 0 && now_ms - account->dormant_step_ms < TOLD_MS)
        return arena_format(arena,
                            "it was taken for unused, last on %s; \"souk wallet statement\" shows "
                            "whether a part of what it had went back to the market",
                            when);
    return NULL;
}
