#include "peer/meter.h"

#include "base/assert.h"

void meter_start(struct meter *meter, const struct lease_fence *lease, int64_t tick_ms,
                 int64_t now_ns, const struct meter_usage *usage)
{
    ASSERT(tick_ms > 0);
    *meter = (struct meter){.lease = lease->lease,
                            .fence = lease->fence,
                            .tick_ms = tick_ms,
                            .start_ns = now_ns,
                            .metered = *usage};
}

int64_t meter_wait_ms(const struct meter *meter, int64_t now_ns)
{
    const int64_t end_ns = meter->start_ns + (meter->period_count + 1) * meter->tick_ms * 1000000;
    if (end_ns <= now_ns)
        return 0;
    return (end_ns - now_ns + 999999) / 1000000;
}

static uint64_t difference(int64_t now, int64_t before)
{
    return now > before ? (uint64_t)(now - before) : 0;
}

bool meter_take(struct meter *meter, int64_t now_ns, const struct meter_usage *usage,
                struct meter_message *out_message)
{
    int64_t passed_ms = (now_ns - meter->start_ns) / 1000000;
    if (meter->is_by_calls && usage->called_ms < passed_ms)
        passed_ms = usage->called_ms;
    if (passed_ms <= meter->metered_ms) {
        if (meter_wait_ms(meter, now_ns) == 0)
            meter->period_count++; /* nothing was used in it */
        return false;
    }
    *out_message = (struct meter_message){
        .lease = meter->lease,
        .fence = meter->fence,
        .tick_index = meter->next_index,
        .wall_ms = (uint64_t)(passed_ms - meter->metered_ms),
        .cpu_ms = difference(usage->cpu_ms, meter->metered.cpu_ms),
        .memory_peak_bytes = (uint64_t)usage->memory_peak_bytes,
        .bytes_in = usage->bytes_in - meter->metered.bytes_in,
        .bytes_out = usage->bytes_out - meter->metered.bytes_out,
    };
    meter->next_index++;
    meter->period_count++;
    meter->metered_ms = passed_ms;
    meter->metered = *usage;
    return true;
}

void meter_sign(struct meter_message *message, const struct identity *identity)
{
    uint8_t signed_bytes[METER_SIGNED_SIZE];
    meter_message_signed(message, signed_bytes);
    identity_sign(identity, signed_bytes, sizeof(signed_bytes), message->signature);
}
