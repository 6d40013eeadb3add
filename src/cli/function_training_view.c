#include "base/json.h"
#include "cli/function_training.h"
#include "cli/output.h"
#include "function/earlier.h"

#include <inttypes.h>

/* Between epochs no call has the old one. */
static void renew_token(struct training *training)
{
    const char *token;
    struct error error;
    if (!training->market)
        return;
    if (function_market_token(training->market, &token, &error) < 0)
        output_note(training->cli, "The functions go on with the token they have: %s",
                    error.message);
    else
        lead_set_token(training->lead, token);
}

void function_training_on_epoch(void *context, const struct driver_report *report)
{
    struct training *training = context;
    const struct function_seen *seen = &report->seen;
    struct json_writer writer;
    struct buffer one AUTO_BUFFER;
    const struct run_epoch epoch = {
        .epoch = report->epoch,
        .is_cut_short = report->is_cut_short,
        .functions = seen->choice.function_count,
        .memory_mb = seen->choice.memory_mb,
        .seconds = seen->total_s,
        .fetch_s = seen->fetch_s,
        .compute_s = seen->compute_s,
        .update_s = seen->update_s,
        .memory_use = seen->memory_use,
        .cpu_use = seen->cpu_use,
        .calls = seen->call_count,
        .failures = seen->failure_count,
        .staleness = report->staleness,
        .test_loss = report->measure.loss,
        .test_accuracy = report->measure.accuracy,
        .cost_micro = seen->cost_micro,
    };
    output_note(training->cli,
                "epoch %" PRIu64 "%s: %u function%s of %u MB, %.1f s, loss %.4f, accuracy %.2f %%, "
                "%" PRIu64 " call%s, %s so far",
                report->epoch + 1, report->is_cut_short ? " (cut short)" : "",
                seen->choice.function_count, seen->choice.function_count == 1 ? "" : "s",
                seen->choice.memory_mb, seen->total_s, report->measure.loss,
                100 * report->measure.accuracy, seen->call_count, seen->call_count == 1 ? "" : "s",
                output_amount(training->cli, report->spent_micro));
    buffer_init(&one, 4096);
    json_writer_init(&writer, &one);
    json_write(&writer, &run_epoch_schema, &epoch);
    if (training->epochs.size)
        buffer_append_byte(&training->epochs, ',');
    buffer_append_text(&training->epochs, buffer_text(&one));
    renew_token(training);
}

static void print_json(const struct training *training, const struct driver_outcome *outcome,
                       double seconds)
{
    struct buffer out AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&out, 8 << 20);
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_string(&writer, "job", training->job.name);
    json_field_string(&writer, "end", driver_end_names[outcome->end]);
    json_field_string(&writer, "reason", outcome->reason);
    json_field_string(&writer, "schedule", function_schedule_names[training->wanted->schedule]);
    json_field_string(&writer, "plan", function_schedule_plan(training->schedule));
    json_field_u64(&writer, "epochs_done", outcome->epochs);
    json_field_double(&writer, "test_loss_start", training->loss_start);
    json_field_double(&writer, "test_loss", outcome->best.loss);
    json_field_double(&writer, "test_accuracy", outcome->best.accuracy);
    json_field_u64(&writer, "samples", lead_samples(training->lead));
    json_field_u64(&writer, "updates", lead_version(training->lead));
    json_field_u64(&writer, "calls", outcome->calls);
    json_field_u64(&writer, "failures", outcome->failures);
    json_field_u64(&writer, "throttled", outcome->throttled);
    json_field_u64(&writer, "cold_starts", outcome->cold_starts);
    json_field_i64(&writer, "billed_ms", outcome->billed_ms);
    json_field_i64(&writer, "spent_micro", outcome->spent_micro);
    json_field_double(&writer, "seconds", seconds);
    json_field_string(&writer, "output", training->wanted->output);
    json_key(&writer, "epochs");
    json_array_begin(&writer);
    json_raw(&writer, buffer_text(&training->epochs));
    json_array_end(&writer);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

void function_training_print(const struct training *training, const struct driver_outcome *outcome,
                             double seconds)
{
    const struct cli *cli = training->cli;
    if (cli->common.json) {
        print_json(training, outcome, seconds);
        return;
    }
    output_field(cli, "Ended:    ", "%s", outcome->reason);
    output_field(cli, "Test:     ", "loss %.4f, accuracy %.2f %%", outcome->best.loss,
                 100 * outcome->best.accuracy);
    output_field(cli, "Calls:    ", "%" PRIu64 ", %" PRIu64 " cold, %" PRIu64 " failed",
                 outcome->calls, outcome->cold_starts, outcome->failures);
    output_field(cli, "Bill:     ", "%s", output_amount(cli, outcome->spent_micro));
    output_field(cli, "Model:    ", "%s/model.safetensors", training->wanted->output);
}
