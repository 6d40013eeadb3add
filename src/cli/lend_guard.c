#include "cli/lend_guard.h"

#include "base/units.h"

const char *const lend_guard_choices[] = {"full", "low", "frozen", NULL};

int lend_guard_parse(const struct lend_guard_options *options, struct peer_options *peer,
                     struct error *error)
{
    struct guard_wishes wishes = {
        .cpu_low_share_milli = options->yield_cpu_milli,
        .cpu_freeze_share_milli = options->freeze_cpu_milli,
        .gpu_share_milli = options->yield_gpu_milli,
        .input_quiet_ms = options->input_quiet_ms,
        .temperature_max = options->max_temperature,
        .resume_ms = options->resume_after_ms,
        .on_input = (enum guard_level)options->on_input,
        .on_battery = (enum guard_level)options->on_battery,
        .on_lid = (enum guard_level)options->on_lid,
        .on_metered = (enum guard_level)options->on_metered,
    };
    const struct text memory = text_trim(text_of(options->keep_memory));
    if (memory.size > 0) {
        const int result = text_ends_with(memory, TEXT("%"))
                               ? units_parse_share(memory, &wishes.memory_share_milli, error)
                               : units_parse_bytes(memory, &wishes.memory_bytes, error);
        if (result < 0)
            return error_wrap(error, "--keep-memory");
    }
    if (wishes.cpu_freeze_share_milli < wishes.cpu_low_share_milli)
        return error_set(error, ERROR_INVALID,
                         "--freeze-cpu must not be less than --yield-cpu: first leases get less, "
                         "then nothing");
    peer->owner = wishes;
    peer->is_blind = !options->is_watching;
    peer->is_metered = options->is_metered;
    return 0;
}
