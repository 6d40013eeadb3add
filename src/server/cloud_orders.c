/* Orders on disk: what the market's next start goes on with. */
#include "base/assert.h"
#include "base/file.h"
#include "base/log.h"
#include "market/machine.h"
#include "server/cloud_internal.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

enum { BILL_MS = 600000 };

static struct fleet_options options_of(const struct cloud_config *config)
{
    struct fleet_options options = {
        .instances_max = (uint32_t)config->instances_max,
        .usd_micro_per_hour_max = config->usd_micro_per_hour_max,
        .hours_max = config->hours_max,
        .boot_ms = config->boot_ms,
        .idle_ms = config->idle_ms,
        .list_ms = config->list_ms,
        .bill_ms = BILL_MS,
    };
    uint8_t run[8];
    randombytes_buf(run, sizeof(run));
    text_hex_encode(run, sizeof(run), options.run);
    randombytes_buf(&options.seed, sizeof(options.seed));
    return options;
}

/* Whoever takes a file that cannot be read for none ends all that its orders had started. */
static int refuse(struct error *error)
{
    return error_wrap(error,
                      "cloud-orders.json in the market's folder cannot be read (its machines "
                      "are left alone: put a good copy there, or take it away to have them "
                      "ended)");
}

static int open_orders(struct cloud *cloud, struct error *error)
{
    const struct fleet_options options = options_of(&cloud->config);
    const int64_t now_ms = clock_utc_ms(cloud->server->clock);
    if (file_read(cloud->orders_path, &cloud->saved, error) < 0) {
        if (error->code != ERROR_NOT_FOUND)
            return refuse(error);
        cloud->fleet = fleet_new(&options);
        fleet_save(cloud->fleet, &cloud->saved); /* nothing that is worth a file */
        return 0;
    }
    if (fleet_load(&options, buffer_text(&cloud->saved), now_ms, &cloud->fleet, error) < 0)
        return refuse(error);
    return 0;
}

int cloud_orders_save(struct cloud *cloud, struct error *error)
{
    struct buffer fresh AUTO_BUFFER;
    buffer_init(&fresh, FLEET_SAVED_MAX);
    fleet_save(cloud->fleet, &fresh);
    const struct text text = buffer_text(&fresh);
    if (buffer_check(&fresh, error) < 0)
        return -1;
    if (text_equal(text, buffer_text(&cloud->saved)))
        return 0;
    if (file_replace(cloud->orders_path, &text, 1, 0600, error) < 0)
        return -1;
    buffer_clear(&cloud->saved);
    buffer_append(&cloud->saved, fresh.data, fresh.size);
    return 0;
}

void cloud_orders_keep(struct cloud *cloud)
{
    struct error error;
    const bool is_failing = cloud_orders_save(cloud, &error) < 0;
    if (is_failing && !cloud->is_save_failing)
        log_event(LOG_ERROR, "cloud_orders_unsaved", "error=\"%s\"", error.message);
    cloud->is_save_failing = is_failing;
}

/* ---- What the market's own log knows --------------------------------------------------------- */

/* Its lender may have enrolled right before the market died: it has the name that it was given. */
static void find_machine(struct cloud *cloud, const struct core *core,
                         const struct fleet_member *member, const struct cloud_seat *seat,
                         int64_t now_ms)
{
    const struct machine *machine = member->machine
                                        ? core_machine(core, member->machine)
                                        : core_machine_by_name(core, text_of(seat->name));
    if (!machine || machine->owner != ACCOUNT_OPERATOR)
        return;
    if (!member->machine)
        cloud_enrolled(cloud, member->id, machine->id);
    fleet_leased(cloud->fleet, machine->id, (uint32_t)machine->lease_count, now_ms);
}

static bool has_order(const struct cloud *cloud, uint64_t job)
{
    for (size_t i = 0; i < fleet_order_count(cloud->fleet); i++)
        if (fleet_order_at(cloud->fleet, i)->wish.job == job)
            return true;
    return false;
}

static void adopt_members(struct cloud *cloud, const struct core *core, int64_t now_ms)
{
    for (size_t i = 0; i < fleet_member_count(cloud->fleet); i++) {
        const struct fleet_member *member = fleet_member_at(cloud->fleet, i);
        if (member->state == FLEET_GONE && !member->machine)
            continue;
        find_machine(cloud, core, member, cloud_seat_adopt(cloud, core, member), now_ms);
    }
}

static void adopt_jobs(struct cloud *cloud, const struct core *core, int64_t now_ms)
{
    for (size_t i = 0; i < fleet_order_count(cloud->fleet); i++) {
        const uint64_t id = fleet_order_at(cloud->fleet, i)->wish.job;
        const struct job *job = id ? core_job(core, id) : NULL;
        if (id && (!job || job_state_is_final(job->state)))
            fleet_job_ended(cloud->fleet, id, now_ms);
    }
    /* One that was taken right before the market died has no order yet. */
    for (size_t i = 0; i < core_job_count(core); i++) {
        const struct job *job = core_job_at(core, i);
        if (job->state == JOB_STATE_PENDING && !has_order(cloud, job->id))
            cloud_tell_job(cloud, job->id, &job->request);
    }
}

int cloud_adopt(struct cloud *cloud, const struct core *core, struct error *error)
{
    const int64_t now_ms = clock_utc_ms(cloud->server->clock);
    if (open_orders(cloud, error) < 0)
        return -1;
    adopt_members(cloud, core, now_ms);
    adopt_jobs(cloud, core, now_ms);
    if (fleet_living(cloud->fleet))
        log_event(LOG_INFO, "cloud_adopted", "orders=%zu instances=%zu run=%s",
                  fleet_order_count(cloud->fleet), fleet_living(cloud->fleet),
                  fleet_run(cloud->fleet));
    return 0;
}
