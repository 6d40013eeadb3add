/*
 * The job file's fields. To add one: a row here, a member of the struct, a line in
 * docs/job-file.md; reading, writing, schema and messages follow from the row.
 */
#include "runtime/job_spec.h"

#include "base/assert.h"
#include "market/job.h" /* JOB_NODES_MAX */
#include "runtime/job_field_internal.h"
#include "runtime/job_model_internal.h"
#include "runtime/job_reader_internal.h"
#include "train/model_spec.h"

#include <stddef.h>

#define MINUTE_MS INT64_C(60000)
#define DAY_MS    (INT64_C(1440) * MINUTE_MS)
#define GIB       (INT64_C(1) << 30)

static const char *const runtimes[] = {"native", "command", "torch", "tensorflow",
                                       "spark",  "mpi",     NULL};
static const char *const data_sets[] = {"cifar10", "fashion-mnist", "mnist", NULL}; /* of train/ */
static const char *const shard_ways[] = {"even", "speed", NULL};
static const char *const policies[] = {"auto",
                                       "adsp",
                                       "pace",
                                       "bsp",
                                       "ssp",
                                       "tap",
                                       "fixed-adacomm",
                                       "adacomm",
                                       "hsp",
                                       "backup",
                                       "diloco",
                                       "async-local", /* of sync/ */
                                       "batchtune",
                                       "batchtune-fixed",
                                       NULL};
static const char *const schedules[] = {"grow", "decay", NULL};
static const char *const overlaps[] = {"auto", "on", "off", NULL};
static const char *const codecs[] = {"f32", "f16", "bf16", "int8", "1bit", "topk", "auto", NULL};
static const char *const robusts[] = {"none", "norm", "trimmed", "median", NULL};
static const char *const searches[] = {"auto", "paper", "off", NULL};
static const char *const networks[] = {"none", "job", "open", NULL};
static const char *const infras[] = {"aws", NULL};
static const char *const installs[] = {"none", "wheels", "index", NULL};
static const char *const splits[] = {"train",  "test",  "files", "image",
                                     "wheels", "mount", "all",   NULL};

#define LATER(name_)                                                                               \
    {                                                                                              \
        .name = (name_), .kind = JOB_FIELD_LATER                                                   \
    }
#define LATER_SAYING(name_, help_)                                                                 \
    {                                                                                              \
        .name = (name_), .kind = JOB_FIELD_LATER, .help = (help_)                                  \
    }

static const struct job_field resources_fields[] = {
    {"cpus", JOB_FIELD_CPUS, offsetof(struct job_resources, cpus_milli), "1+",
     "Cores of each worker: 2 is exactly two, 2+ at least two.", .minimum = 1, .maximum = 1024000},
    {"memory", JOB_FIELD_MEMORY, offsetof(struct job_resources, memory_bytes), "0.25+",
     "Memory of each worker in GiB, or with a unit. 2+ suits wherever 2 does and is leased as 2: "
     "name what it needs.",
     .minimum = 16 << 20, .maximum = 4096 * GIB},
    {"disk_size", JOB_FIELD_SIZE, offsetof(struct job_resources, disk_size_bytes), "1",
     "Disk of each worker in GiB, or with a unit.", .minimum = 1 << 20, .maximum = 16384 * GIB},
    {"infra", JOB_FIELD_WORD, offsetof(struct job_resources, infra),
     .help = "Machines of a cloud are started for the job, and it runs on them alone, if the "
             "market's operator allows it: aws.",
     .choices = infras},
    {"accelerators", JOB_FIELD_ACCELERATORS, offsetof(struct job_resources, accelerators),
     .help = "GPUs of each worker: a model and a count, T4:1; with the least memory, T4:16GB+:1."},
    {"bandwidth", JOB_FIELD_BANDWIDTH, offsetof(struct job_resources, bandwidth_kbit),
     .help = "Of each worker's link, in Mbit/s or with a unit.", .minimum = 1,
     .maximum = RESOURCES_KBIT_MAX},
    {"labels", JOB_FIELD_WORDS, offsetof(struct job_resources, labels),
     .help = "What each worker's machine must have: python3-torch, cuda-12, avx2.",
     .maximum = MACHINE_LABELS_SIZE - 1},
    {"network", JOB_FIELD_WORD, offsetof(struct job_resources, network), "none",
     "What each worker may reach: nothing, the job's other ranks, the Internet.",
     .choices = networks},
    {"install", JOB_FIELD_WORD, offsetof(struct job_resources, install), "none",
     "What may be installed for it: nothing, uploaded wheels, wheels of the machine's index.",
     .choices = installs},
    {"instance_type", JOB_FIELD_NAME, offsetof(struct job_resources, instance_type),
     .help = "With infra: which type, like m5.large; one for each worker, which takes all of it.",
     .maximum = 47},
    {"use_spot", JOB_FIELD_BOOL, offsetof(struct job_resources, use_spot),
     .help = "With infra: spot machines, which the cloud may take back."},
    {"image_id", JOB_FIELD_SCRIPT, offsetof(struct job_resources, image_id),
     .help = "An image to run in: a file of docker save or podman save, or a folder with an OCI "
             "layout. Machines must permit images.",
     .maximum = 4095},
    LATER("ports"),
    LATER("any_of"),
    LATER("ordered"),
    LATER("autostop"),
    LATER("job_recovery"),
    LATER_SAYING("max_hourly_cost", "belongs into market: write market.max_hourly_cost"),
};
static const struct job_table resources_table = JOB_TABLE(resources_fields, struct job_resources);

static const struct job_field target_fields[] = {
    {"accuracy", JOB_FIELD_DOUBLE, offsetof(struct job_target, accuracy),
     .help = "Stop once the test set's accuracy reaches this.", .minimum = 0, .maximum = 1},
    {"loss", JOB_FIELD_DOUBLE, offsetof(struct job_target, loss),
     .help = "Stop once the test set's loss is down to this.", .minimum = 0, .maximum = 1000000000},
    {"error", JOB_FIELD_DOUBLE, offsetof(struct job_target, error),
     .help = "Stop once the test set's error is down to this: of numbers the root of the mean "
             "squared error, of classes the share told wrong.",
     .minimum = 0, .maximum = 1000000000},
    {"perplexity", JOB_FIELD_DOUBLE, offsetof(struct job_target, perplexity),
     .help = "Stop once the test set's perplexity is down to this, of a model that tells the next "
             "token.",
     .minimum = 0, .maximum = 1000000000},
    {"min_time", JOB_FIELD_DURATION, offsetof(struct job_target, min_time_ms),
     .help = "But train at least this long.", .minimum = 0, .maximum = 30 * DAY_MS},
};
static const struct job_table target_table = JOB_TABLE(target_fields, struct job_target);

static const struct job_field train_fields[] = {
    {"model", JOB_FIELD_WORD, offsetof(struct job_train, model), .help = "A built-in model.",
     .choices = model_kind_names},
    {"layers", JOB_FIELD_LIST, offsetof(struct job_train, layers),
     .help = "A network of your own, layer by layer, instead of a model.",
     .maximum = MODEL_LAYERS_MAX, .table = &job_layer_table,
     .count_offset = offsetof(struct job_train, layer_count)},
    {"data", JOB_FIELD_DATA, offsetof(struct job_train, data),
     .help = "A data set of the catalogue, a file or folder of your own, an address (https://, "
             "s3://, hdfs://), or peer://LABEL, which lenders have: docs/data.md.",
     .is_required = true, .choices = data_sets, .maximum = 4095},
    {"test", JOB_FIELD_SCRIPT, offsetof(struct job_train, test),
     .help = "With data that lie at lenders, peer://LABEL: a file of your own like theirs, which "
             "tests the model.",
     .maximum = 4095},
    {"label", JOB_FIELD_SCRIPT, offsetof(struct job_train, label),
     .help = "The column of a CSV file to be told; by default the last.", .maximum = 63},
    {"read", JOB_FIELD_OBJECT, offsetof(struct job_train, read),
     .help = "How a file of your own is read.", .table = &job_read_table, .is_left_out = true},
    {"shards", JOB_FIELD_WORD, offsetof(struct job_train, shards), "even",
     "How many records each worker gets: all alike, or by the measured speed of its cores.",
     .choices = shard_ways},
    {"augment", JOB_FIELD_OBJECT, offsetof(struct job_train, augment),
     .help = "What is done to images as they are drawn.", .table = &job_augment_table,
     .is_left_out = true},
    {"predict", JOB_FIELD_WORD, offsetof(struct job_train, predict),
     .help = "What is told of a record: a class, a number, or the next word or character after "
             "each; by default what model and loss tell.",
     .choices = job_predict_names},
    {"channels", JOB_FIELD_U64, offsetof(struct job_train, channels),
     .help = "Of the images of a file; `souk job submit` fills it in.", .minimum = 1,
     .maximum = 64},
    {"height", JOB_FIELD_U64, offsetof(struct job_train, height),
     .help = "Of the images of a file, the rows of a window, 2 of sparse rows; `souk job submit` "
             "fills it in.",
     .minimum = 1, .maximum = 16384},
    {"features", JOB_FIELD_U64, offsetof(struct job_train, features),
     .help = "Columns of a file without the label, the width of its images, words of its texts, or "
             "entries of its sparse rows; `souk job submit` fills it in.",
     .minimum = 1, .maximum = 65536},
    {"vocabulary", JOB_FIELD_U64, offsetof(struct job_train, vocabulary),
     .help = "Different words or characters of a file, or places of its sparse rows; `souk job "
             "submit` fills it in.",
     .minimum = 2, .maximum = 1 << 24},
    {"classes", JOB_FIELD_U64, offsetof(struct job_train, classes),
     .help = "Different labels of a file; `souk job submit` fills it in.", .minimum = 2,
     .maximum = 65536},
    {"mean", JOB_FIELD_DOUBLE, offsetof(struct job_train, mean),
     .help = "Of the bytes of images over 255; `souk job submit` fills it in.", .minimum = 0,
     .maximum = 1},
    {"deviation", JOB_FIELD_DOUBLE, offsetof(struct job_train, deviation),
     .help = "Of the bytes of images over 255; `souk job submit` fills it in.", .minimum = 0,
     .maximum = 1},
    {"target_deviation", JOB_FIELD_DOUBLE, offsetof(struct job_train, target_deviation),
     .help = "Of the numbers to be told, which are scaled by it; `souk job submit` fills it in.",
     .minimum = 0, .maximum = INT64_MAX},
    {"loss", JOB_FIELD_WORD, offsetof(struct job_train, loss),
     .help = "What is minimised; by default what the model is known for, else cross_entropy.",
     .choices = loss_kind_names},
    {"optimizer", JOB_FIELD_OBJECT, offsetof(struct job_train, optimizer),
     .help = "How each worker steps.", .table = &job_optimizer_table},
    {"batch", JOB_FIELD_U64, offsetof(struct job_train, batch), "32", "Samples per step.",
     .minimum = 1, .maximum = 65536},
    {"epochs", JOB_FIELD_U64, offsetof(struct job_train, epochs), "1",
     "Passes over the data at most.", .minimum = 1, .maximum = 1000000},
    {"target", JOB_FIELD_OBJECT, offsetof(struct job_train, target), .help = "When to stop early.",
     .table = &target_table},
    {"seed", JOB_FIELD_U64, offsetof(struct job_train, seed), "1",
     "Of the first weights and the order of samples.", .minimum = 0,
     .maximum = INT64_C(9007199254740991)},
};
const struct job_table job_train_table = JOB_TABLE(train_fields, struct job_train);

static const struct job_field sync_fields[] = {
    {"policy", JOB_FIELD_WORD, offsetof(struct job_sync, policy), "auto",
     "How the workers keep in step.", .choices = policies},
    {"gamma", JOB_FIELD_DURATION, offsetof(struct job_sync, gamma_ms),
     .help = "The check period; by default a twentieth of the expected run, 1 s to 60 s.",
     .minimum = 100, .maximum = 3600000},
    {"commit_interval_min", JOB_FIELD_DURATION, offsetof(struct job_sync, commit_interval_min_ms),
     .help = "Commits of a worker come no closer; by default twice the measured commit time.",
     .minimum = 1, .maximum = 3600000},
    {"tick", JOB_FIELD_DURATION, offsetof(struct job_sync, tick_ms),
     .help = "Metered and billed this often; by default the smaller of 10 s and gamma.",
     .minimum = 200, .maximum = 60000},
    {"checkpoint_interval", JOB_FIELD_DURATION, offsetof(struct job_sync, checkpoint_interval_ms),
     "30s", "What is learnt in it is lost at most when the parameter server is.", .minimum = 1000,
     .maximum = 3600000},
    {"search", JOB_FIELD_WORD, offsetof(struct job_sync, search), "auto",
     "How adsp finds the commit rate.", .choices = searches},
    {"local_steps", JOB_FIELD_U64, offsetof(struct job_sync, local_steps),
     .help = "Steps between pushes; by default the policy's own. Not of adsp.", .minimum = 1,
     .maximum = 100000},
    {"slack", JOB_FIELD_U64, offsetof(struct job_sync, slack),
     .help = "ssp: the fastest waits when it is so many steps ahead; by default 40.", .minimum = 1,
     .maximum = 1000000},
    {"backups", JOB_FIELD_U64, offsetof(struct job_sync, backups),
     .help = "backup: workers that are not waited for; by default a tenth, at least one.",
     .minimum = 1, .maximum = JOB_NODES_MAX},
    {"staleness", JOB_FIELD_U64, offsetof(struct job_sync, staleness),
     .help = "hsp: no push enters the model more than so many pushes late; by default twice the "
             "workers.",
     .minimum = 1, .maximum = 1000000},
    {"epoch_steps", JOB_FIELD_U64, offsetof(struct job_sync, epoch_steps),
     .help = "hsp: steps of all workers between barriers; by default a pass over the data.",
     .minimum = 1, .maximum = INT64_C(1000000000)},
    {"schedule", JOB_FIELD_WORD, offsetof(struct job_sync, schedule),
     .help =
         "hsp: how the workers of `num_nodes: 1..8` go from epoch to epoch: grow from the least "
         "to the most, or decay; by default as many as there is room for.",
     .choices = schedules},
    {"outer_rate", JOB_FIELD_DOUBLE, offsetof(struct job_sync, outer_rate),
     .help = "How far the model follows the workers' mean; by default the policy's own.",
     .minimum = 0, .maximum = 100},
    {"outer_momentum", JOB_FIELD_DOUBLE, offsetof(struct job_sync, outer_momentum), "-1",
     "Of the model from one update to the next, below 1; -1: the policy's own.", .minimum = -1,
     .maximum = 1},
    {"deadline", JOB_FIELD_DURATION, offsetof(struct job_sync, deadline_ms),
     .help = "pace: a round ends so long after its first push; by default from the speeds.",
     .minimum = 1, .maximum = 3600000},
    {"overlap", JOB_FIELD_WORD, offsetof(struct job_sync, overlap), "auto",
     "Whether workers compute on while a push is under way; auto: as the policy does.",
     .choices = overlaps},
    {"taus", JOB_FIELD_WORDS, offsetof(struct job_sync, taus),
     .help = "adacomm: local steps to try at the start, a gamma each.", .maximum = 127},
    {"compress", JOB_FIELD_WORD, offsetof(struct job_sync, compress), "f32",
     "How updates and models travel; auto: as each worker's link asks for.", .choices = codecs},
    {"density", JOB_FIELD_DOUBLE, offsetof(struct job_sync, density), "0.01",
     "topk: the share of an update that travels at once; the rest waits.", .minimum = 0,
     .maximum = 1},
    {"compress_momentum", JOB_FIELD_DOUBLE, offsetof(struct job_sync, compress_momentum), "0",
     "topk: of what waits, below 1; for optimizers without momentum.", .minimum = 0, .maximum = 1},
    {"robust", JOB_FIELD_WORD, offsetof(struct job_sync, robust), "norm",
     "How pushes that may be garbage are kept from spoiling the model.", .choices = robusts},
    {"trim", JOB_FIELD_DOUBLE, offsetof(struct job_sync, trim), "0.2",
     "trimmed: the share of a round's pushes left out at each end, below 0.5.", .minimum = 0,
     .maximum = 1},
    {"verify", JOB_FIELD_DOUBLE, offsetof(struct job_sync, verify), "0",
     "The share of pushes that other workers make again, to find who sends garbage.", .minimum = 0,
     .maximum = 1},
    {"servers", JOB_FIELD_U64, offsetof(struct job_sync, servers), "1",
     "Parameter servers, each with a range of the model and a lease of its own.", .minimum = 1,
     .maximum = JOB_SERVERS_MAX},
    {"replica", JOB_FIELD_BOOL, offsetof(struct job_sync, replica), "false",
     "One more follows the first parameter server on another machine, and takes its place when it "
     "is lost."},
};
const struct job_table job_sync_table = JOB_TABLE(sync_fields, struct job_sync);

static const struct job_field market_fields[] = {
    {"max_hourly_cost", JOB_FIELD_CREDITS, offsetof(struct job_market, max_hourly_cost_micro),
     .help = "Credits per hour for all machines together.", .minimum = 1,
     .maximum = INT64_C(1000000000000000)},
    {"max_total_cost", JOB_FIELD_CREDITS, offsetof(struct job_market, max_total_cost_micro),
     .help = "Credits the whole job may cost.", .minimum = 1, .maximum = INT64_C(1000000000000000)},
    {"max_run_time", JOB_FIELD_DURATION, offsetof(struct job_market, max_run_time_ms), "1h",
     "The job is stopped after this; credits for it are held at the start.", .minimum = 1000,
     .maximum = 30 * DAY_MS},
    {"expected_run_time", JOB_FIELD_DURATION, offsetof(struct job_market, expected_run_time_ms),
     .help = "How long it will likely run.", .minimum = 1000, .maximum = 30 * DAY_MS},
    {"start", JOB_FIELD_START, offsetof(struct job_market, start), "now",
     "When to start: now, by an instant or a span of time, or cheapest before one."},
    {"rush", JOB_FIELD_BOOL, offsetof(struct job_market, rush), "false",
     "Go ahead when there is a queue, for double the price of the first hour."},
    {"replace_lost", JOB_FIELD_BOOL, offsetof(struct job_market, replace_lost), "true",
     "A worker that is lost or taken back gets a successor, within the budget."},
    {"spare", JOB_FIELD_BOOL, offsetof(struct job_market, spare), "false",
     "Run for nothing on unsold time that is given away, with less than 1 credit; whoever pays "
     "ends it at any moment, and it waits again."},
    {"max_rtt", JOB_FIELD_DURATION, offsetof(struct job_market, max_rtt_ms),
     .help = "The longest round trip between any two workers, by a direct path or the market.",
     .minimum = 1, .maximum = MACHINE_RTT_US_MAX / 1000},
    {"min_reliability", JOB_FIELD_MILLI, offsetof(struct job_market, min_reliability_milli),
     .help = "The least reliability of each machine, 0 to 1.", .minimum = 0, .maximum = 1000},
    {"min_speed", JOB_FIELD_MILLI, offsetof(struct job_market, min_speed_milli),
     .help = "The least speed of each machine's cores, against the reference.", .minimum = 0,
     .maximum = PRICE_SPEED_MILLI_MAX},
};
static const struct job_table market_table = JOB_TABLE(market_fields, struct job_market);

static const struct job_field input_fields[] = {
    {"name", JOB_FIELD_NAME, offsetof(struct job_input, name), .help = "The file's name.",
     .is_required = true, .maximum = 63},
    {"split", JOB_FIELD_INDEX, offsetof(struct job_input, split), .help = "What it is used for.",
     .is_required = true, .choices = splits},
    {"manifest", JOB_FIELD_HASH, offsetof(struct job_input, manifest),
     .help = "BLAKE2b-256 of its manifest.", .is_required = true},
    {"records", JOB_FIELD_U64, offsetof(struct job_input, records), .help = "How many it has.",
     .is_required = true, .minimum = 1, .maximum = INT64_C(1000000000000)},
};
static const struct job_table input_table = JOB_TABLE(input_fields, struct job_input);

static const struct job_field tensorflow_fields[] = {
    {"parameter_servers", JOB_FIELD_U64, offsetof(struct job_tensorflow, parameter_servers),
     .help = "Ranks that are parameter servers, the last; without any all are workers.",
     .minimum = 0, .maximum = JOB_NODES_MAX},
};
const struct job_table job_tensorflow_table = JOB_TABLE(tensorflow_fields, struct job_tensorflow);

static const char *const per_gpu[] = {"per_gpu", NULL};

static const struct job_field torch_fields[] = {
    {"processes", JOB_FIELD_U64, offsetof(struct job_torch, processes),
     .help = "Processes of each rank, as torchrun --nproc-per-node; by default one.", .minimum = 1,
     .maximum = JOB_PROCESSES_MAX, .choices = per_gpu},
};
const struct job_table job_torch_table = JOB_TABLE(torch_fields, struct job_torch);

static const struct job_field spec_fields[] = {
    {"name", JOB_FIELD_NAME, offsetof(struct job_spec, name), .help = "What to call the job.",
     .is_required = true, .maximum = 64},
    {"workdir", JOB_FIELD_SCRIPT, offsetof(struct job_spec, workdir),
     .help = "A folder whose files every rank gets, or an address of an archive or folder; `run` "
             "starts in a copy of it.",
     .maximum = 4095},
    {"num_nodes", JOB_FIELD_NODES, offsetof(struct job_spec, num_nodes), "1",
     "Workers, each on a machine of its own; 2..8 is two at least, eight when there is room.",
     .minimum = 1, .maximum = JOB_NODES_MAX,
     .count_offset = offsetof(struct job_spec, num_nodes_max)},
    {"num_nodes_max", JOB_FIELD_U64, offsetof(struct job_spec, num_nodes_max),
     .help = "The most workers it takes when there is room; by default num_nodes.", .minimum = 1,
     .maximum = JOB_NODES_MAX},
    {"resources", JOB_FIELD_OBJECT, offsetof(struct job_spec, resources),
     .help = "What each worker needs.", .table = &resources_table},
    {"envs", JOB_FIELD_ENVS, offsetof(struct job_spec, envs),
     .help = "Variables of the environment of `setup` and `run`.", .maximum = JOB_ENVS_MAX,
     .count_offset = offsetof(struct job_spec, env_count)},
    {"secrets", JOB_FIELD_ENVS, offsetof(struct job_spec, secrets),
     .help = "Variables that are never shown: every rank of your own program has them, and who "
             "submits reads data and files that lie elsewhere with them (AWS_ACCESS_KEY_ID ...). "
             "Without a value, or as ${NAME}, the value is that of the environment.",
     .maximum = JOB_ENVS_MAX, .count_offset = offsetof(struct job_spec, secret_count),
     .is_kept_back = true},
    {"secret_names", JOB_FIELD_WORDS, offsetof(struct job_spec, secret_names),
     .help = "Of the secrets that a job has; `souk job submit` fills them in.",
     .maximum = (int64_t)JOB_ENVS_MAX * (JOB_ENV_NAME_SIZE_MAX + 1)},
    {"secret_file", JOB_FIELD_NAME, offsetof(struct job_spec, secret_file),
     .help = "Where the market keeps them sealed, which fills it in.", .maximum = 64},
    {"file_mounts", JOB_FIELD_MOUNTS, offsetof(struct job_spec, file_mounts),
     .help =
         "Files that every rank finds in its working folder, to read: a place there, and a path "
         "or address they come from; with shard: true each rank gets its part of them.",
     .maximum = JOB_MOUNTS_MAX, .count_offset = offsetof(struct job_spec, file_mount_count)},
    {"requirements", JOB_FIELD_SCRIPT, offsetof(struct job_spec, requirements),
     .help = "A requirements file of pip: what it names is fetched here, uploaded, and installed "
             "for every rank; with resources.install index the machines fetch it themselves.",
     .maximum = 4095},
    {"wheels", JOB_FIELD_WORDS, offsetof(struct job_spec, wheels),
     .help = "Wheels that are installed for every rank: files, and folders of them.",
     .maximum = 4095},
    {"setup", JOB_FIELD_SCRIPT, offsetof(struct job_spec, setup),
     .help = "A shell script that every rank runs first.", .maximum = JOB_SCRIPT_SIZE_MAX},
    {"run", JOB_FIELD_SCRIPT, offsetof(struct job_spec, run),
     .help = "A shell script that every rank runs.", .maximum = JOB_SCRIPT_SIZE_MAX},
    {"runtime", JOB_FIELD_WORD, offsetof(struct job_spec, runtime),
     .help = "What runs on the machines; by default command with `run`, else native.",
     .choices = runtimes},
    {"restart", JOB_FIELD_WORD, offsetof(struct job_spec, restart),
     .help = "What starts again when a rank is lost or its script fails: the whole job, that rank, "
             "or nothing; by default the job with a framework, the rank with spark and without.",
     .choices = muster_restart_names},
    {"max_restarts", JOB_FIELD_U64, offsetof(struct job_spec, max_restarts),
     .help = "How often a script that failed is started again; ranks that are lost do not count. "
             "By default never.",
     .minimum = 0, .maximum = 1000},
    {"checkpoint_interval", JOB_FIELD_DURATION, offsetof(struct job_spec, checkpoint_interval_ms),
     .help = "What is left in $SOUK_CHECKPOINT_DIR is kept no more often; by default 30 s.",
     .minimum = 1000, .maximum = 3600000},
    {"tensorflow", JOB_FIELD_OBJECT, offsetof(struct job_spec, tensorflow),
     .help = "What the ranks of runtime tensorflow are.", .table = &job_tensorflow_table,
     .is_left_out = true},
    {"torch", JOB_FIELD_OBJECT, offsetof(struct job_spec, torch),
     .help = "What the ranks of runtime torch are.", .table = &job_torch_table,
     .is_left_out = true},
    {"train", JOB_FIELD_OBJECT, offsetof(struct job_spec, train), .help = "What to train.",
     .table = &job_train_table, .is_left_out = true},
    {"sync", JOB_FIELD_OBJECT, offsetof(struct job_spec, sync),
     .help = "How the workers keep in step.", .table = &job_sync_table, .is_left_out = true},
    {"market", JOB_FIELD_OBJECT, offsetof(struct job_spec, market),
     .help = "What it may cost and how long it may take.", .table = &market_table},
    {"inputs", JOB_FIELD_LIST, offsetof(struct job_spec, inputs),
     .help = "Data files in the market's store; `souk job submit` fills them in.",
     .maximum = JOB_INPUTS_MAX, .table = &input_table,
     .count_offset = offsetof(struct job_spec, input_count)},
};
const struct job_table job_spec_table = JOB_TABLE(spec_fields, struct job_spec);

_Static_assert(sizeof(enum job_split) == sizeof(int), "JOB_FIELD_INDEX fills an int");

const char *job_split_name(enum job_split split)
{
    ASSERT(split < JOB_SPLIT_COUNT);
    return splits[split];
}

/* What fields say together; with `more` all that is wrong. */
static int check_together(struct job_reader *reader, const struct job_node *root,
                          struct job_spec *spec)
{
    struct error refusal;
    if (!job_spec_is_command(spec)) {
        job_sync_check(reader, root, spec);
        if (job_model_check(root, reader->file_name, &spec->train, &refusal) < 0 ||
            job_data_check(root, reader->file_name, spec, &refusal) < 0)
            job_note_refusal(reader, &refusal);
    }
    if (spec->resources.infra.size && !spec->resources.instance_type.size)
        job_refuse_path(reader, root, "resources.infra",
                        "goes with instance_type: say which machines, like m5.large");
    if (spec->resources.infra.size && !spec->market.max_hourly_cost_micro &&
        !spec->market.max_total_cost_micro)
        job_refuse_path(reader, root, "resources.infra",
                        "goes with market.max_total_cost or max_hourly_cost: such machines lend at "
                        "no less than they cost, which may be more than the posted price");
    if (!spec->resources.infra.size && spec->resources.instance_type.size)
        job_refuse_path(reader, root, "resources.instance_type", "goes with infra: aws");
    if (!spec->resources.infra.size && spec->resources.use_spot)
        job_refuse_path(reader, root, "resources.use_spot", "goes with infra: aws");
    if (spec->market.expected_run_time_ms > spec->market.max_run_time_ms)
        job_refuse_path(reader, root, "market.expected_run_time",
                        "must not be longer than max_run_time");
    return reader->has_failed ? -1 : 0;
}

int job_spec_read_tree(struct arena *arena, const struct job_node *root, const char *file_name,
                       struct job_spec *out_spec, struct buffer *more, struct error *error)
{
    struct job_spec spec = {0};
    job_table_set_defaults(arena, &job_spec_table, &spec);
    if (job_table_read(arena, &job_spec_table, root, file_name, &spec, more, error) < 0 ||
        job_runtime_check(root, file_name, &spec, error) < 0)
        return -1;
    struct job_reader reader = {
        .arena = arena, .file_name = file_name, .error = error, .more = more};
    if (check_together(&reader, root, &spec) < 0)
        return -1;
    const struct job_node *nodes = job_node_find(root, TEXT("num_nodes"));
    const struct job_node *most = job_node_find(root, TEXT("num_nodes_max"));
    struct job_nodes range = {0};
    if (nodes && most && job_nodes_parse(nodes->value, &range, error) == 0 && range.most)
        return job_table_refuse(root, file_name, "num_nodes_max",
                                "num_nodes names the most already", error);
    if (spec.num_nodes_max && spec.num_nodes_max < spec.num_nodes)
        return job_table_refuse(root, file_name, "num_nodes_max", "is below num_nodes", error);
    for (size_t i = 0; i < spec.input_count; i++)
        for (size_t k = 0; k < i; k++)
            if (text_equal(spec.inputs[i].name, spec.inputs[k].name))
                return error_set(error, ERROR_INVALID, "inputs[%zu].name: \"%.*s\" is there twice",
                                 i, TEXT_ARGS(spec.inputs[i].name));
    *out_spec = spec;
    return 0;
}

int job_spec_read_new_tree(struct arena *arena, const struct job_node *root, const char *file_name,
                           struct job_spec *out_spec, struct buffer *more, struct error *error)
{
    struct job_spec spec;
    if (job_spec_read_tree(arena, root, file_name, &spec, more, error) < 0 ||
        job_runtime_check_new(root, file_name, &spec, error) < 0)
        return -1;
    *out_spec = spec;
    return 0;
}

int job_spec_read(struct arena *arena, struct text json, struct job_spec *out_spec,
                  struct error *error)
{
    struct job_node *root;
    if (job_node_read_json(arena, json, &root, error) < 0)
        return error_wrap(error, "job spec");
    return job_spec_read_tree(arena, root, NULL, out_spec, NULL, error);
}

int job_spec_read_new(struct arena *arena, struct text json, struct job_spec *out_spec,
                      struct error *error)
{
    struct job_node *root;
    if (job_node_read_json(arena, json, &root, error) < 0)
        return error_wrap(error, "job spec");
    return job_spec_read_new_tree(arena, root, NULL, out_spec, NULL, error);
}

void job_spec_write(const struct job_spec *spec, struct buffer *json)
{
    struct json_writer writer;
    json_writer_init(&writer, json);
    job_table_write(&writer, &job_spec_table, spec);
}

void job_spec_write_schema(struct buffer *json)
{
    struct json_writer writer;
    json_writer_init(&writer, json);
    job_table_write_schema(&writer, &job_spec_table);
}
