/* Tenancy, metering: what a lease used, told tick by tick while it runs, and its disk. */
#include "peer/tenancy_internal.h"
#include "sandbox/folder.h"

struct meter_usage tenancy_usage(struct tenancy *tenancy)
{
    struct sandbox_usage used = {0};
    if (tenancy->sandbox)
        sandbox_read_usage(tenancy->sandbox, &used);
    struct meter_usage usage = {.cpu_ms = used.cpu_ms,
                                .memory_peak_bytes = used.memory_peak_bytes,
                                .bytes_in = tenancy->ended_bytes_in,
                                .bytes_out = tenancy->ended_bytes_out};
    if (tenancy->functions)
        usage.called_ms = tenancy_called_ms(tenancy);
    LIST_EACH(&tenancy->streams, node)
    {
        const struct stream_counts counts =
            stream_counts(LIST_ITEM(node, struct tenancy_stream, node)->stream);
        usage.bytes_in += counts.bytes_in;
        usage.bytes_out += counts.bytes_out;
    }
    if (tenancy->network) {
        const struct packet_switch_counts counts = job_network_counts(tenancy->network);
        usage.bytes_in += counts.bytes_in;
        usage.bytes_out += counts.bytes_out;
    }
    if (tenancy->internet) {
        const struct open_network_counts counts = open_network_counts(tenancy->internet);
        usage.bytes_in += counts.bytes_in;
        usage.bytes_out += counts.bytes_out;
    }
    return usage;
}

static void send_meter(struct tenancy *tenancy)
{
    const int64_t now_ns = tenancy_now_ns(tenancy);
    const struct meter_usage usage = tenancy_usage(tenancy);
    struct lease_message message = {.type = LEASE_MESSAGE_METER};
    if (meter_take(&tenancy->meter, now_ns, &usage, &message.meter))
        outbox_send(tenancy->host->outbox, &message, now_ns);
}

void tenancy_stop_meter(struct tenancy *tenancy)
{
    loop_timer_stop(tenancy->tick_timer);
    if (tenancy->is_metering)
        send_meter(tenancy);
    tenancy->is_metering = false;
}

/* What cannot be measured is taken to be too much: it would be a way around the limit. */
static void check_disk(struct tenancy *tenancy)
{
    struct error error;
    int64_t bytes = 0, function_bytes = 0;
    const char *store = tenancy_function_store(tenancy);
    if (folder_measure(tenancy->lease_folder, TENANCY_FILES_MAX, &bytes, &error) < 0 ||
        (store && folder_measure(store, TENANCY_FILES_MAX, &function_bytes, &error) < 0))
        error_wrap(&error, "the job's folder");
    else if (bytes + function_bytes > tenancy_disk_bytes(tenancy))
        error_set(&error, ERROR_EXHAUSTED, "the job filled the disk it was given");
    else
        return;
    tenancy_fail(tenancy, &error);
}

void tenancy_on_tick(void *context)
{
    struct tenancy *tenancy = context;
    if (meter_wait_ms(&tenancy->meter, tenancy_now_ns(tenancy)) == 0)
        send_meter(tenancy);
    loop_timer_start(tenancy->tick_timer, meter_wait_ms(&tenancy->meter, tenancy_now_ns(tenancy)));
    check_disk(tenancy);
}

void tenancy_set_running(struct tenancy *tenancy)
{
    if (tenancy->state != LEASE_RUN_STARTING || tenancy->has_failed)
        return;
    tenancy->state = LEASE_RUN_RUNNING;
    tenancy_send_state(tenancy);
    const struct lease_fence fence = {tenancy->document.lease, tenancy->document.fence};
    const struct meter_usage usage = tenancy_usage(tenancy);
    meter_start(&tenancy->meter, &fence, tenancy->document.tick_ms, tenancy_now_ns(tenancy),
                &usage);
    tenancy->meter.is_by_calls = tenancy->functions != NULL;
    tenancy->is_metering = true;
    loop_timer_start(tenancy->tick_timer, tenancy->document.tick_ms);
}
