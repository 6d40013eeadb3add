#include "runtime/native.h"

#include "base/assert.h"
#include "base/json_schema.h"
#include "runtime/lease_message.h"

#include <inttypes.h>
#include <string.h>

/* The document as JSON has it: the work part is a value of its own. */
struct raw_document {
    struct lease_document document;
    int role;
    struct text spec;
    struct json_array data;
};

static const struct json_field data_fields[] = {
    {"name", JSON_CHARS, offsetof(struct lease_data, name), .is_required = true,
     .size_max = sizeof(((struct lease_data *)0)->name)},
    {"manifest", JSON_HEX, offsetof(struct lease_data, manifest), .is_required = true,
     .size_max = JOB_HASH_SIZE},
    {"first_record", JSON_U64, offsetof(struct lease_data, first_record), .is_required = true},
    {"record_count", JSON_U64, offsetof(struct lease_data, record_count), .is_required = true},
};
static const struct json_schema data_schema = JSON_SCHEMA("data", data_fields, struct lease_data);

static const char *const roles[] = {"worker", "server", NULL};

#define DOCUMENT(member) offsetof(struct raw_document, document.member)
static const struct json_field document_fields[] = {
    {"lease", JSON_U64, DOCUMENT(lease), .is_required = true},
    {"fence", JSON_U64, DOCUMENT(fence), .is_required = true},
    {"job", JSON_U64, DOCUMENT(job), .is_required = true},
    {"name", JSON_TEXT, DOCUMENT(name), .is_required = true, .size_max = 64},
    {"machine", JSON_U64, DOCUMENT(machine), .is_required = true},
    {"machine_name", JSON_TEXT, DOCUMENT(machine_name), .size_max = 64},
    {"offer", JSON_U64, DOCUMENT(offer), .is_required = true},
    {"role", JSON_CHOICE, offsetof(struct raw_document, role), .is_required = true,
     .choices = roles},
    {"rank", JSON_U64, DOCUMENT(rank), .is_required = true},
    {"world", JSON_U64, DOCUMENT(world), .is_required = true, .minimum = 1, .maximum = 100000},
    {"cores_milli", JSON_I64, DOCUMENT(cores_milli), .is_required = true, .minimum = 1,
     .maximum = INT64_C(1000000000)},
    {"ram_bytes", JSON_I64, DOCUMENT(ram_bytes), .is_required = true, .minimum = 0,
     .maximum = INT64_C(1) << 52},
    {"disk_bytes", JSON_I64, DOCUMENT(disk_bytes), .is_required = true, .minimum = 0,
     .maximum = INT64_C(1) << 52},
    {"gpus_milli", JSON_I64, DOCUMENT(gpus_milli), .minimum = 0, .maximum = INT64_C(1000000)},
    {"tick_ms", JSON_I64, DOCUMENT(tick_ms), .is_required = true, .minimum = 100,
     .maximum = 3600000},
    {"expires_ms", JSON_I64, DOCUMENT(expires_ms), .is_required = true, .minimum = 0,
     .maximum = INT64_C(1) << 52},
    {"network", JSON_TEXT, DOCUMENT(network), .size_max = 16},
    {"labels", JSON_TEXT, DOCUMENT(labels), .size_max = MACHINE_LABELS_SIZE,
     .is_zero_omitted = true},
    {"has_image", JSON_BOOL, DOCUMENT(has_image), .is_zero_omitted = true},
    {"has_wheels", JSON_BOOL, DOCUMENT(has_wheels), .is_zero_omitted = true},
    {"fetches_packages", JSON_BOOL, DOCUMENT(fetches_packages), .is_zero_omitted = true},
    {"runtime", JSON_TEXT, DOCUMENT(runtime), .is_required = true, .size_max = 32},
    {"spec", JSON_ANY, offsetof(struct raw_document, spec), .is_required = true},
    {"data", JSON_ARRAY, offsetof(struct raw_document, data), .is_required = true,
     .size_max = JOB_INPUTS_MAX, .schema = &data_schema},
};
static const struct json_schema document_schema =
    JSON_SCHEMA("lease", document_fields, struct raw_document);

/* Where shard `part` begins: floor(records * before / all) without overflow for any record count.
 */
static uint64_t shard_begin(const struct native_lease *lease, uint64_t records, uint64_t part)
{
    unsigned __int128 before = 0, all = 0;
    uint64_t most = 1;
    for (uint32_t i = 0; lease->speeds && i < lease->world; i++)
        most = lease->speeds[i] > most ? lease->speeds[i] : most;
    const uint64_t least = (most + NATIVE_SLOWNESS_MAX - 1) / NATIVE_SLOWNESS_MAX;
    for (uint32_t i = 0; i < lease->world; i++) {
        const uint64_t speed = lease->speeds ? lease->speeds[i] : 1;
        const uint64_t weight = speed > least ? speed : least;
        before += i < part ? weight : 0;
        all += weight;
    }
    return (uint64_t)(records * before / all);
}

void native_shard(uint64_t records, uint64_t rank, uint64_t world, uint64_t *out_first,
                  uint64_t *out_count)
{
    const uint64_t shard = rank % world;
    *out_first = (uint64_t)((unsigned __int128)records * shard / world);
    *out_count = (uint64_t)((unsigned __int128)records * (shard + 1) / world) - *out_first;
}

static void put_checkpoint(struct lease_data *item, const char *name,
                           const struct native_checkpoint *checkpoint)
{
    snprintf(item->name, sizeof(item->name), "%s", name);
    memcpy(item->manifest, checkpoint->manifest, sizeof(item->manifest));
    item->record_count = checkpoint->size_bytes;
}

static int choose_data(const struct job_spec *spec, const struct native_lease *lease,
                       struct lease_data *data, size_t *out_count, struct error *error)
{
    const enum job_split wanted = job_spec_is_command(spec)          ? JOB_SPLIT_FILES
                                  : lease->role == LEASE_ROLE_WORKER ? JOB_SPLIT_TRAIN
                                                                     : JOB_SPLIT_TEST;
    size_t count = 0;
    for (size_t i = 0; i < spec->input_count; i++) {
        const struct job_input *input = &spec->inputs[i];
        const bool is_image = input->split == JOB_SPLIT_IMAGE;
        const bool is_wheels = input->split == JOB_SPLIT_WHEELS;
        const bool is_mount = input->split == JOB_SPLIT_MOUNT;
        const bool is_for_all = input->split == JOB_SPLIT_ALL && wanted != JOB_SPLIT_FILES;
        if (input->split != wanted && !is_for_all &&
            !((is_image || is_wheels || is_mount) && wanted == JOB_SPLIT_FILES))
            continue;
        if (lease->checkpoint && text_equal(input->name, TEXT(LEASE_CHECKPOINT_NAME)))
            continue; /* there is a later one */
        struct lease_data *item = &data[count++];
        if (text_copy(is_image    ? TEXT(LEASE_IMAGE_NAME)
                      : is_wheels ? TEXT(LEASE_WHEELS_NAME)
                                  : input->name,
                      item->name, sizeof(item->name), error) < 0)
            return error_wrap(error, "input name");
        memcpy(item->manifest, input->manifest, sizeof(item->manifest));
        item->record_count = input->records;
        if (wanted != JOB_SPLIT_TRAIN || is_for_all)
            continue;
        uint64_t first, own;
        if (spec->sync.verify > 0) { /* it gets all: this is what it trains on */
            native_shard(input->records, lease->rank, lease->world, &first, &own);
        } else {
            const uint64_t shard = lease->rank % lease->world;
            first = item->first_record = shard_begin(lease, input->records, shard);
            own = item->record_count = shard_begin(lease, input->records, shard + 1) - first;
        }
        if (own == 0)
            return error_set(error, ERROR_INVALID,
                             "input \"%s\" has %" PRIu64 " records, too few for %u workers",
                             item->name, input->records, lease->world);
    }
    if (lease->checkpoint && count == JOB_INPUTS_MAX)
        return error_set(error, ERROR_INVALID, "no room for a checkpoint beside %d inputs",
                         JOB_INPUTS_MAX);
    if (lease->checkpoint)
        put_checkpoint(&data[count++], LEASE_CHECKPOINT_NAME, lease->checkpoint);
    if (lease->checkpoint_before && count < JOB_INPUTS_MAX)
        put_checkpoint(&data[count++], LEASE_CHECKPOINT_BEFORE_NAME, lease->checkpoint_before);
    *out_count = count;
    return 0;
}

int native_lease_write(const struct job_spec *spec, const struct native_lease *lease,
                       struct buffer *json, struct error *error)
{
    ASSERT(lease->world > 0);
    ASSERT(spec->input_count <= JOB_INPUTS_MAX);
    struct lease_data data[JOB_INPUTS_MAX];
    memset(data, 0, sizeof(data));
    size_t data_count = 0;
    if (choose_data(spec, lease, data, &data_count, error) < 0)
        return -1;
    struct buffer work AUTO_BUFFER;
    buffer_init(&work, JOB_SPEC_SIZE_MAX);
    job_spec_write_work(spec, &work);
    if (buffer_check(&work, error) < 0)
        return -1;
    const struct raw_document raw = {
        .document =
            {
                .lease = lease->lease,
                .fence = lease->fence,
                .job = lease->job,
                .name = spec->name,
                .machine = lease->machine,
                .machine_name = lease->machine_name,
                .offer = lease->offer,
                .rank = lease->rank,
                .world = lease->world,
                .cores_milli = lease->cores_milli,
                .ram_bytes = lease->ram_bytes,
                .disk_bytes = lease->disk_bytes,
                .gpus_milli = lease->gpus_milli,
                .tick_ms = job_spec_tick_ms(spec),
                .expires_ms = lease->expires_ms,
                .network = spec->resources.network.size ? spec->resources.network : TEXT("none"),
                .labels = job_spec_is_command(spec) ? spec->resources.labels : (struct text){0},
                .has_image = job_spec_image(spec) != NULL,
                .has_wheels = job_spec_wheels(spec) != NULL,
                .fetches_packages =
                    job_spec_wheels(spec) && text_is(spec->resources.install, "index"),
                .runtime = spec->runtime,
            },
        .role = (int)lease->role,
        .spec = buffer_text(&work),
        .data = {data, data_count},
    };
    const size_t before = json->size;
    struct json_writer writer;
    json_writer_init(&writer, json);
    json_write(&writer, &document_schema, &raw);
    if (buffer_check(json, error) < 0)
        return error_wrap(error, "lease %" PRIu64, lease->lease);
    if (json->size - before > LEASE_DOCUMENT_SIZE_MAX)
        return error_set(error, ERROR_EXHAUSTED, "lease %" PRIu64 ": document too long",
                         lease->lease);
    return 0;
}

static int check_document(const struct lease_document *document, struct error *error)
{
    const bool is_command = lease_document_is_command(document);
    if (!is_command && document->sync.gamma_ms == 0)
        return error_set(error, ERROR_INVALID, "lease.spec.sync.gamma: missing");
    if (!is_command && !text_is(document->runtime, "native"))
        return error_set(error, ERROR_INVALID, "lease.runtime: \"" TEXT_FORMAT "\" is not known",
                         TEXT_ARGS(document->runtime));
    if (is_command && !document->run.size && !document->has_image)
        return error_set(error, ERROR_INVALID, "lease.spec.run: missing");
    if (document->is_gathered &&
        (document->rank >= document->world_max || document->world_max > MUSTER_RANKS_MAX))
        return error_set(error, ERROR_INVALID, "lease.rank: its job has no such rank");
    if (document->has_image && (!is_command || !lease_document_image(document)))
        return error_set(error, ERROR_INVALID, "lease.has_image: there is none");
    if (document->has_wheels &&
        (!is_command || document->has_image || !lease_document_wheels(document)))
        return error_set(error, ERROR_INVALID, "lease.has_wheels: there are none");
    if (document->fetches_packages && !document->has_wheels)
        return error_set(error, ERROR_INVALID, "lease.fetches_packages: nothing lists them");
    for (size_t i = 0; i < document->data_count; i++) {
        const struct lease_data *data = &document->data[i];
        uint64_t end;
        if (data->record_count == 0 ||
            __builtin_add_overflow(data->first_record, data->record_count, &end))
            return error_set(error, ERROR_INVALID, "lease.data[%zu]: no such records", i);
        /* The name becomes a file's: nothing that could leave the folder. */
        if (data->name[0] == '\0' || data->name[0] == '.' || strchr(data->name, '/'))
            return error_set(error, ERROR_INVALID, "lease.data[%zu].name: not a file name", i);
    }
    return 0;
}

bool lease_document_has_all_records(const struct lease_document *document)
{
    return document->sync.verify > 0;
}

bool lease_document_is_command(const struct lease_document *document)
{
    return job_spec_is_command(&(struct job_spec){.runtime = document->runtime});
}

bool lease_document_is_checkpoint(const struct lease_document *document, struct text name)
{
    if (!lease_document_is_command(document))
        return document->role == LEASE_ROLE_SERVER && text_equal(name, TEXT(LEASE_CHECKPOINT_NAME));
    return text_equal(name, TEXT(LEASE_JOB_CHECKPOINT_NAME)) ||
           text_equal(name, TEXT(LEASE_RANK_CHECKPOINT_NAME));
}

static const struct lease_data *find_data(const struct lease_document *document, const char *name)
{
    for (size_t i = 0; i < document->data_count; i++)
        if (strcmp(document->data[i].name, name) == 0)
            return &document->data[i];
    return NULL;
}

const struct lease_data *lease_document_image(const struct lease_document *document)
{
    return document->has_image ? find_data(document, LEASE_IMAGE_NAME) : NULL;
}

const struct lease_data *lease_document_wheels(const struct lease_document *document)
{
    return document->has_wheels ? find_data(document, LEASE_WHEELS_NAME) : NULL;
}

bool lease_document_has_network(const struct lease_document *document)
{
    return document->role == LEASE_ROLE_WORKER && document->network.size > 0 &&
           !text_equal(document->network, TEXT("none"));
}

bool lease_document_has_internet(const struct lease_document *document)
{
    return lease_document_has_network(document) && text_equal(document->network, TEXT("open"));
}

static void set_mounts(const struct job_spec *spec, struct lease_data *data, size_t count)
{
    for (size_t i = 0; i < spec->file_mount_count; i++) {
        char name[sizeof(JOB_MOUNT_INPUT) + 24];
        snprintf(name, sizeof(name), JOB_MOUNT_INPUT "%zu", i);
        for (size_t k = 0; k < count; k++)
            if (strcmp(data[k].name, name) == 0)
                data[k].mount = &spec->file_mounts[i];
    }
}

int lease_document_read(struct arena *arena, struct text json, struct lease_document *out_document,
                        struct error *error)
{
    if (json.size > LEASE_DOCUMENT_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "lease document of %zu bytes is too long",
                         json.size);
    struct raw_document raw;
    memset(&raw, 0, sizeof(raw));
    if (json_read(arena, json, &document_schema, &raw, error) < 0)
        return -1;
    struct job_spec spec;
    if (job_spec_read_work(arena, raw.document.runtime, raw.spec, &spec, error) < 0)
        return error_wrap(error, "lease.spec");
    struct lease_document document = raw.document;
    document.role = (enum lease_role)raw.role;
    document.train = spec.train;
    document.sync = spec.sync;
    document.setup = spec.setup;
    document.run = spec.run;
    document.tensorflow = spec.tensorflow;
    document.torch = spec.torch;
    document.is_gathered = job_spec_is_gathered(&spec);
    document.restart = job_spec_restart(&spec);
    document.max_restarts = spec.max_restarts;
    document.checkpoint_interval_ms = job_spec_checkpoint_ms(&spec);
    document.world_max = spec.num_nodes_max > document.world ? spec.num_nodes_max : document.world;
    document.envs = spec.envs;
    document.env_count = spec.env_count;
    document.mounts = spec.file_mounts;
    document.mount_count = spec.file_mount_count;
    set_mounts(&spec, raw.data.items, raw.data.count);
    document.data = raw.data.items;
    document.data_count = raw.data.count;
    if (check_document(&document, error) < 0)
        return -1;
    *out_document = document;
    return 0;
}
