/* GPUs that leases have: what each lease uses of them, and what other programs do. */
#include "peer/daemon_internal.h"

enum { GPU_PERIOD_MS = 500 };

static bool is_holder(const struct holding_state *state)
{
    return !state->has_ended && state->use.gpus != 0;
}

bool daemon_leases_gpu(void *context)
{
    const struct daemon *daemon = context;
    for (size_t i = 0; i < daemon->holdings.count; i++)
        if (is_holder(holding_state(daemon->holdings.entries[i].value)))
            return true;
    return false;
}

int64_t daemon_others_gpu_milli(void *context)
{
    const struct daemon *daemon = context;
    return daemon->others_gpu_milli;
}

static void daemon_on_gpu(void *context)
{
    struct daemon *daemon = context;
    struct gpu_holder holders[DAEMON_LEASE_MAX];
    struct holding_state *states[DAEMON_LEASE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < daemon->holdings.count && count < DAEMON_LEASE_MAX; i++) {
        struct holding *holding = daemon->holdings.entries[i].value;
        struct holding_state *state = holding_state(holding);
        if (!is_holder(state))
            continue;
        states[count] = state;
        holders[count++] = (struct gpu_holder){.gpus = state->use.gpus,
                                               .is_whole = state->use.resources.gpus_milli >= 1000,
                                               .keeper = holding_pid(holding)};
    }
    daemon->others_gpu_milli = gpu_use_read(daemon->gpu_use, holders, count, daemon_now_ns(daemon));
    for (size_t i = 0; i < count; i++)
        states[i]->gpu_us += holders[i].used_us;
    if (count > 0)
        loop_timer_start(daemon->gpu_timer, GPU_PERIOD_MS);
}

void daemon_watch_gpus(struct daemon *daemon)
{
    if (!loop_timer_is_running(daemon->gpu_timer) && daemon_leases_gpu(daemon))
        loop_timer_start(daemon->gpu_timer, 0);
}

/* What is less than a millisecond goes into the next tick. */
uint64_t daemon_take_gpu_ms(struct holding *holding)
{
    struct holding_state *state = holding_state(holding);
    const int64_t used_ms = state->gpu_us / 1000;
    state->gpu_us -= used_ms * 1000;
    return (uint64_t)used_ms;
}

void daemon_open_gpus(struct daemon *daemon)
{
    daemon->gpu_use = gpu_use_new(daemon->options->probe.nvml);
    daemon->gpu_timer = loop_timer_new(daemon->loop, daemon_on_gpu, daemon);
    daemon->others_gpu_milli = GUARD_UNKNOWN;
}

void daemon_close_gpus(struct daemon *daemon)
{
    loop_timer_free(daemon->gpu_timer);
    gpu_use_free(daemon->gpu_use);
}
