/* covers job_field.c, job_field_scalar.c, job_node.c, job_model.c, job_sync.c */
#include "runtime/job_file.h"
#include "runtime/job_model.h"
#include "testing/testing.h"

#include <string.h>

static const char good[] =
    "# The demo's job.\n"
    "name: fashion-mnist\n"
    "num_nodes: 3\n"
    "resources: {cpus: 0.25+, memory: 0.25+}\n"
    "runtime: native\n"
    "train:\n"
    "  model: lenet5\n"
    "  data: fashion-mnist\n"
    "  batch: 64\n"
    "  optimizer: {name: sgd, lr: 0.02, momentum: 0.9}\n"
    "  epochs: 100\n"
    "  target: {accuracy: 0.885, min_time: 30s}\n"
    "  seed: 7\n"
    "sync: {policy: adsp}\n"
    "market: {max_total_cost: 1, max_run_time: 3m, expected_run_time: 60s}\n";

TEST(a_whole_job_file_is_read)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_file_parse(arena, text_of(good), "job.yaml", &spec, NULL, &error));
    assert_true(text_equal(spec.name, TEXT("fashion-mnist")));
    assert_int_equal(spec.num_nodes, 3);
    assert_int_equal(spec.resources.cpus_milli.value, 250);
    assert_true(spec.resources.cpus_milli.is_at_least);
    assert_int_equal(spec.resources.memory_bytes.value, 256 << 20);
    assert_true(spec.resources.memory_bytes.is_at_least);
    assert_int_equal(spec.resources.disk_size_bytes, 1 << 30);
    assert_true(text_equal(spec.train.model, TEXT("lenet5")));
    assert_int_equal(spec.train.batch, 64);
    assert_true(spec.train.optimizer.lr == 0.02);
    assert_true(spec.train.target.accuracy == 0.885);
    assert_int_equal(spec.train.target.min_time_ms, 30000);
    assert_int_equal(spec.market.max_total_cost_micro, 1000000);
    assert_int_equal(spec.market.max_run_time_ms, 180000);
    assert_true(text_equal(spec.sync.search, TEXT("auto")));
    assert_int_equal(job_spec_gamma_ms(&spec), 3000);
    assert_int_equal(job_spec_tick_ms(&spec), 3000);
}

TEST(json_is_yaml_too)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_file_parse(
        arena, TEXT("{\"name\":\"j\",\"train\":{\"model\":\"mlp\",\"data\":\"mnist\"}}"), "j.json",
        &spec, NULL, &error));
    assert_int_equal(spec.num_nodes, 1);
    assert_int_equal(spec.train.batch, 32);
}

#define MINIMAL "name: j\ntrain: {model: mlp, data: mnist}\n"

static const struct {
    const char *yaml;
    const char *message;
} wrong[] = {
    /* the file */
    {"", "job.yaml:1:1: the file is empty"},
    {"# nothing\n", "job.yaml:2:1: the file is empty"},
    {"just text\n", "job.yaml:1:1: must be a mapping of fields to values"},
    {"- a\n- b\n", "job.yaml:1:1: must be a mapping of fields to values"},
    {"name: j\n\ttrain: 1\n", "job.yaml:2:1: a tab may not indent; use spaces"},
    {"name: [a\n", "job.yaml:2:1: did not find expected ',' or ']'"},
    {"name: \"a\n", "job.yaml:2:1: found unexpected end of stream"},
    {"name: a\xff\n", "job.yaml:1:8: is not valid UTF-8 text"},
    {MINIMAL "---\nname: k\n", "job.yaml:3:1: a second document is not allowed"},
    {"name: &a j\n", "job.yaml:1:7: anchors and aliases are not allowed; write the value out"},
    {"name: *a\n", "job.yaml:1:7: anchors and aliases are not allowed; write the value out"},
    {"name: !!str j\n", "job.yaml:1:7: tags (!...) are not allowed"},
    {"? [a]\n: b\n", "job.yaml:1:3: a field's name must be plain text"},
    {MINIMAL "name: k\n", "job.yaml:3:1: field \"name\" is there twice; first in line 1"},
    {"name: j\ntrain:\n  model: mlp\n  data: mnist\n  batch: 1\n  batch: 2\n",
     "job.yaml:6:3: field \"batch\" is there twice; first in line 5"},
    {"a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]\n", "job.yaml:1:18: is nested too deeply"},
    /* fields */
    {MINIMAL "num_node: 3\n",
     "job.yaml:3:1: unknown field \"num_node\"; did you mean \"num_nodes\"?"},
    {"name: j\ntrain:\n  model: mlp\n  data: mnist\n  optimiser: {lr: 1}\n",
     "job.yaml:5:3: train: unknown field \"optimiser\"; did you mean \"optimizer\"?"},
    {MINIMAL "zebra: 3\n", "job.yaml:3:1: unknown field \"zebra\""},
    {"train: {model: mlp, data: mnist}\n", "job.yaml:1:1: name: is missing"},
    {"name: j\n", "job.yaml:1:1: train: is missing"},
    {"name: j\ntrain: {model: mlp}\n", "job.yaml:2:8: train.data: is missing"},
    {"name: j\ntrain:\n", "job.yaml:2:7: train: must be a mapping of fields to values"},
    {"name: j\ntrain: {model: mlp, data: mnist, batch: }\n",
     "job.yaml:2:41: train.batch: has no value"},
    {"name: [j]\n", "job.yaml:1:7: name: must be a single value"},
    {"name: ../etc\n",
     "job.yaml:1:7: name: must be 1 to 64 letters, digits, '-', '_' or '.', beginning with a "
     "letter or digit"},
    /* values */
    {"name: j\ntrain:\n  model: mlp\n  data: mnist\n  epochs: 3\n\n  batch:  0\n",
     "job.yaml:7:11: train.batch: must be from 1 to 65536"},
    {"name: j\ntrain: {model: mlp, data: mnist, batch: many}\n",
     "job.yaml:2:41: train.batch: must be a whole number from 1 to 65536"},
    {"name: j\ntrain: {model: mlp, data: mnist, batch: '32'}\n",
     "job.yaml:2:41: train.batch: must be a whole number from 1 to 65536"},
    {"name: j\ntrain: {model: mlp, data: mnist, batch: 32.5}\n",
     "job.yaml:2:41: train.batch: must be a whole number from 1 to 65536"},
    {"name: j\ntrain: {model: mlp, data: mnist, optimizer: {lr: fast}}\n",
     "job.yaml:2:50: train.optimizer.lr: must be a number from 0 to 100"},
    {"name: j\ntrain: {model: mlp, data: mnist, optimizer: {lr: 0}}\n",
     "job.yaml:2:50: train.optimizer.lr: must be above 0"},
    {"name: j\ntrain: {model: mlp, data: mnist, optimizer: {lr: -0.1}}\n",
     "job.yaml:2:50: train.optimizer.lr: must be from 0 to 100"},
    {"name: j\ntrain: {model: mlp, data: mnist, optimizer: {lr: nan}}\n",
     "job.yaml:2:50: train.optimizer.lr: must be a number from 0 to 100"},
    {"name: j\ntrain: {model: mlp, data: mnist, target: {accuracy: 88}}\n",
     "job.yaml:2:53: train.target.accuracy: must be from 0 to 1"},
    {"name: j\ntrain: {model: mlp, data: mnist, target: {perplexity: 3}}\n",
     "job.yaml:2:55: train.target.perplexity: only a model that tells the next token has one: give "
     "target.loss"},
    {"name: j\ntrain: {model: mlp, data: mnist, target: {loss: -1}}\n",
     "job.yaml:2:49: train.target.loss: must be from 0 to 1000000000"},
    {"name: j\nresources: {memory: 0.25+}\ntrain: {data: mnist, optimizer: {name: adam}, layers: "
     "[{type: dense, outputs: 20000}, {type: dense}]}\n",
     "job.yaml:2:21: resources.memory: 256 MiB are too little: a worker takes at least 491 MiB for "
     "15900010 parameters and a batch of 32; give resources.memory more, or a smaller model or "
     "batch"},
    {"name: j\ntrain: {model: lenet, data: mnist}\n",
     "job.yaml:2:16: train.model: \"lenet\" is unknown; did you mean \"lenet5\"?"},
    {"name: j\ntrain: {model: gpt, data: mnist}\n",
     "job.yaml:2:16: train.model: must be one of lenet5, mlp, logistic, linear, svm, cifar-cnn, "
     "resnet, text-cnn, lstm, gru, lstm-forecast, gru-forecast, char-lstm, layers"},
    /* networks */
    {"name: j\ntrain: {data: mnist}\n", "job.yaml:2:8: train.model: is missing"},
    {"name: j\ntrain: {model: layers, data: mnist}\n", "job.yaml:2:8: train.layers: is missing"},
    {"name: j\ntrain: {model: mlp, data: mnist, layers: [{type: dense}]}\n",
     "job.yaml:2:42: train.layers: a built-in model has its own: give model or layers"},
    {"name: j\ntrain:\n  data: mnist\n  layers:\n  - {type: conv, outputs: 4, kernel: 5}\n"
     "  - {type: conv, outputs: 4, kernel: 25}\n  - {type: dense}\n",
     "job.yaml:6:5: train.layers[1]: layers: layer 2 (conv, of 4 x 24 x 24): a kernel of 25 does "
     "not fit"},
    {"name: j\ntrain:\n  data: mnist\n  layers:\n  - {type: dense, outputs: 9}\n",
     "job.yaml:5:5: train.layers[0]: layers: layer 1 (dense, of 1 x 28 x 28): gives 9 outputs, but "
     "the loss cross_entropy needs 10"},
    {"name: j\ntrain: {data: mnist, layers: [{type: dense, width: 3}]}\n",
     "job.yaml:2:45: train.layers[0]: unknown field \"width\""},
    {"name: j\ntrain: {data: mnist, layers: [{type: thick}]}\n",
     "job.yaml:2:38: train.layers[0].type: must be one of dense, conv, max_pool, average_pool, "
     "batch_norm, layer_norm, local_norm, dropout, embedding, lstm, gru, residual, relu, tanh, "
     "sigmoid, gelu"},
    {"name: j\ntrain: {model: char-lstm, data: mnist}\n",
     "job.yaml:2:16: train.model: char-lstm: layer 1 (embedding, of 1 x 28 x 28): takes tokens, so "
     "it can only be the first layer"},
    {"name: j\ntrain: {model: mlp, data: mnist, optimizer: {name: adam, momentum: 0.9}}\n",
     "job.yaml:2:45: train.optimizer: optimizer: momentum is of sgd; adam has beta1"},
    {"name: j\ntrain: {model: mlp, data: mnist, optimizer: {schedule: {name: step}}}\n",
     "job.yaml:2:45: train.optimizer: schedule: step needs a period"},
    {"name: j\ntrain: {model: mlp, data: rows}\n",
     "job.yaml:2:27: train.data: must be a file like rows.csv, a folder like ./images or one of "
     "cifar10, fashion-mnist, mnist"},
    {"name: j\ntrain: {model: mlp, data: a.csv, read: {missing: often}}\n",
     "job.yaml:2:50: train.read.missing: must be refuse, drop, mean or a number"},
    {"name: j\ntrain: {model: mlp, data: ./a, read: {format: parquet}}\n",
     "job.yaml:2:47: train.read.format: must be one of cifar, cifar-strips, csv, idx, images, "
     "libsvm, npy, text"},
    {"name: j\ntrain: {model: mlp, data: ./a, read: {image_width: 8}}\n",
     "job.yaml:2:38: train.read: image_height and image_width go together"},
    {"name: j\ntrain: {model: lenet5, data: rows.csv}\n",
     "job.yaml:2:16: train.model: lenet5 takes images; use logistic or mlp for a CSV file"},
    {"name: j\ntrain: {model: mlp, data: mnist, label: y}\n",
     "job.yaml:2:41: train.label: is for a file of your own only; leave it out"},
    {"name: j\ntrain: {model: mlp, data: mnist, classes: 3}\n",
     "job.yaml:2:43: train.classes: is for a file of your own only; leave it out"},
    {MINIMAL "sync: {policy: ssp, deadline: 2s}\n",
     "job.yaml:3:31: sync.deadline: policy ssp has no such setting"},
    {MINIMAL "sync:\n  policy: adacomm\n  taus: [1, 0, 20]\n",
     "job.yaml:5:9: sync.taus: must be at most 16 whole numbers from 1 to 1000000"},
    {MINIMAL "sync: {gamma: 5 parsecs}\n",
     "job.yaml:3:15: sync.gamma: \"5 parsecs\" is not a span of time; write it like 30s, 250ms or "
     "1h30m"},
    {MINIMAL "sync: {servers: 9}\n", "job.yaml:3:17: sync.servers: must be from 1 to 8"},
    {MINIMAL "sync: {servers: 0}\n", "job.yaml:3:17: sync.servers: must be from 1 to 8"},
    {"name: j\ntrain: {model: linear, data: a.csv, label: y, features: 3}\nsync: {servers: 8}\n",
     "job.yaml:3:17: sync.servers: 8 servers are too many for a model of 4 parameters: each has a "
     "range of its own"},
    {MINIMAL "num_nodes: 3\nsync: {verify: 0.1, servers: 2}\n",
     "job.yaml:4:16: sync.verify: needs one parameter server: a push that is split among several "
     "cannot be made again by others yet"},
    {MINIMAL "sync: {tick: 1ms}\n", "job.yaml:3:14: sync.tick: must be from 200 ms to 1m"},
    {MINIMAL "market: {max_total_cost: -1}\n",
     "job.yaml:3:26: market.max_total_cost: must be from 0.000001 credits to 1000000000.000000 "
     "credits"},
    {MINIMAL "market: {max_run_time: 10s, expected_run_time: 1m}\n",
     "job.yaml:3:48: market.expected_run_time: must not be longer than max_run_time"},
    {MINIMAL "resources: {cpus: some}\n",
     "job.yaml:3:19: resources.cpus: must be a number of cores like 0.5, 2 or 2+"},
    {MINIMAL "resources: {cpus: 5000}\n", "job.yaml:3:19: resources.cpus: is out of range"},
    {MINIMAL "resources: {memory: 1 ton}\n",
     "job.yaml:3:21: resources.memory: must be a size in GiB like 0.5 or 2, or with a unit like "
     "512MiB"},
    {MINIMAL "num_nodes: 1001\n", "job.yaml:3:12: num_nodes: must be from 1 to 1000"},
    /* wishes */
    {MINIMAL "num_nodes: 8..2\n", "job.yaml:3:12: num_nodes: the least is above the most"},
    {MINIMAL "num_nodes: 2..1001\n", "job.yaml:3:12: num_nodes: must be from 1 to 1000"},
    {MINIMAL "num_nodes: few\n",
     "job.yaml:3:12: num_nodes: must be a whole number like 3, or a range like 2..8, from 1 to "
     "1000"},
    {MINIMAL "num_nodes: 1e9\n",
     "job.yaml:3:12: num_nodes: must be a whole number like 3, or a range like 2..8, from 1 to "
     "1000"},
    {"name: a\nruntime: command\nrun: b\nenvs: {C: null}\n",
     "job.yaml:4:11: envs: \"C\" has no value: write \"\" for an empty one, \"null\" for the word"},
    {MINIMAL "num_nodes: 2..8\nnum_nodes_max: 4\n",
     "job.yaml:4:16: num_nodes_max: num_nodes names the most already"},
    {MINIMAL "num_nodes: 3\nnum_nodes_max: 2\n",
     "job.yaml:4:16: num_nodes_max: is below num_nodes"},
    {MINIMAL "resources: {accelerators: 'T4:'}\n",
     "job.yaml:3:27: resources.accelerators: must be a count, or a model, its memory and a count, "
     "like 1, T4:1, T4:16GB+:2 or 24GB+:1"},
    {MINIMAL "resources: {accelerators: {T4: 1, V100: 1}}\n",
     "job.yaml:3:27: resources.accelerators: must name one model, like T4:1 or {T4: 1}"},
    {MINIMAL "resources: {bandwidth: 20MB}\n",
     "job.yaml:3:24: resources.bandwidth: \"20MB\" is not a bandwidth; write it like 100Mbit or "
     "1Gbit"},
    {MINIMAL "resources: {labels: {a: b}}\n",
     "job.yaml:3:21: resources.labels: must be a list of words like [python3-torch, cuda-12]"},
    {MINIMAL "resources: {labels: [avx2, a b]}\n",
     "job.yaml:3:28: resources.labels[1]: must be one word, without spaces and commas"},
    {MINIMAL "resources: {network: closed}\n",
     "job.yaml:3:22: resources.network: must be one of none, job, open"},
    {MINIMAL "market: {start: soon}\n",
     "job.yaml:3:17: market.start: must be now, by 2026-11-20T18:00Z, by 6h or cheapest before "
     "24h"},
    {MINIMAL "market: {start: by Friday}\n",
     "job.yaml:3:17: market.start: \"Friday\" is neither an instant nor a span of time; write it "
     "like 2026-11-20T18:00Z or 6h"},
    {MINIMAL "market: {rush: yes}\n", "job.yaml:3:16: market.rush: must be true or false"},
    {MINIMAL "market: {min_reliability: 1.1}\n",
     "job.yaml:3:27: market.min_reliability: must be from 0 to 1"},
    {MINIMAL "market: {min_speed: 21}\n", "job.yaml:3:21: market.min_speed: must be from 0 to 20"},
    {MINIMAL "market: {max_rtt: 0}\n", "job.yaml:3:19: market.max_rtt: must be from 1 ms to 1m"},
    /* of the format, but not yet */
    {MINIMAL "setup: pip install torch\n",
     "job.yaml:3:8: setup: is for runtime command; describe the training under train"},
    {MINIMAL "run: |\n  echo hi\n",
     "job.yaml:2:8: train: is not for runtime command; leave it out"},
    {MINIMAL "file_mounts: {/a: b}\n",
     "job.yaml:3:19: file_mounts: \"/a\" is no place in the working folder: write data, or "
     "data/rows"},
    {MINIMAL "file_mounts: {a: b}\n",
     "job.yaml:3:14: file_mounts: is for runtime command; describe the training under train"},
    {"name: a\nrun: b\nfile_mounts: {a: b, a/c: d}\n",
     "job.yaml:3:14: file_mounts: \"a/c\" lies in \"a\""},
    {"name: a\nrun: b\nfile_mounts:\n  a: {source: b, shard: maybe}\n",
     "job.yaml:4:25: file_mounts.shard: must be true or false"},
    {MINIMAL "resources: {image_id: a}\n",
     "job.yaml:2:8: train: is not for runtime command; leave it out"},
    {MINIMAL "runtime: native\nresources: {image_id: a}\n",
     "job.yaml:4:23: resources.image_id: is for runtime command"},
    {MINIMAL "resources: {max_hourly_cost: 2}\n",
     "job.yaml:3:13: resources.max_hourly_cost: belongs into market: write market.max_hourly_cost"},
    {MINIMAL "runtime: torch\n", "job.yaml:2:8: train: is not for runtime torch; leave it out"},
    {"name: a\nruntime: torch\n", "job.yaml:1:1: run: is missing"},
    {"name: a\nruntime: spark\nrun: b\nresources:\n  memory: 0.5\n",
     "job.yaml:5:11: resources.memory: must be at least 1 (GiB) with runtime spark"},
    {"name: a\nruntime: torch\nnum_nodes: 2..3\nrun: b\nrestart: rank\n",
     "job.yaml:5:10: restart: must be job where the number of ranks may change"},
    {MINIMAL "wheels: [a.whl]\n",
     "job.yaml:3:9: wheels: is for runtime command; describe the training under train"},
    {"name: a\nrun: b\nwheels: [a.whl]\nresources: {install: none}\n",
     "job.yaml:4:22: resources.install: is none, and the job brings packages: leave it out, or say "
     "wheels"},
    {"name: a\nrun: b\nrequirements: r.txt\nresources: {image_id: c}\n",
     "job.yaml:3:15: requirements: do not go with resources.image_id: put them into the image"},
    {"name: a\nrun: b\nrestart: always\n",
     "job.yaml:3:10: restart: must be one of job, rank, never"},
    {MINIMAL "max_restarts: 1\n", "job.yaml:3:15: max_restarts: is for runtime command; describe "
                                  "the training under train"},
    {"name: a\nruntime: torch\nrun: b\ntensorflow: {parameter_servers: 1}\n",
     "job.yaml:4:13: tensorflow: is for runtime tensorflow"},
    {"name: a\nruntime: tensorflow\nnum_nodes: 3\nrun: b\ntensorflow: {parameter_servers: 2}\n",
     "job.yaml:5:33: tensorflow.parameter_servers: a chief and a worker come with them: num_nodes "
     "must be at least 4"},
    {"name: a\nruntime: mpi\nrun: b\ntorch: {processes: 2}\n",
     "job.yaml:4:8: torch: is for runtime torch"},
    {"name: a\nruntime: torch\nrun: b\ntorch: {processes: 65}\n",
     "job.yaml:4:20: torch.processes: must be from 1 to 64"},
    {"name: a\nruntime: torch\nrun: b\ntorch: {processes: per_gpu}\n",
     "job.yaml:4:20: torch.processes: per_gpu needs GPUs: resources.accelerators"},
    {MINIMAL "resources: {cpus: 2, accelerators: 'T4:1'}\n",
     "job.yaml:3:36: resources.accelerators: runtime native trains on CPUs only: leave it out, or "
     "use a runtime whose program uses GPUs, like torch"},
    {MINIMAL "resources:\n  accelerators: {T4: 0.5}\n",
     "job.yaml:4:17: resources.accelerators: runtime native trains on CPUs only: leave it out, or "
     "use a runtime whose program uses GPUs, like torch"},
    /* inputs */
    {MINIMAL "inputs: {}\n", "job.yaml:3:9: inputs: must be a list"},
    {MINIMAL "inputs: [{name: a}]\n", "job.yaml:3:10: inputs[0].split: is missing"},
    {MINIMAL "inputs:\n- {name: a, split: test, manifest: xyz, records: 1}\n",
     "job.yaml:4:36: inputs[0].manifest: must be 64 lower-case hex digits"},
};

TEST(every_mistake_is_told_with_its_place)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        AUTO(arena) struct arena *arena = arena_new(0);
        struct error error;
        struct job_spec spec;
        ASSERT_FAILS(job_file_parse(arena, text_of(wrong[i].yaml), "job.yaml", &spec, NULL, &error),
                     ERROR_INVALID);
        assert_string_equal(error.message, wrong[i].message);
    }
}

TEST(a_network_of_ones_own_is_read_and_written)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec, back;
    ASSERT_OK(job_file_parse(arena,
                             TEXT("name: j\n"
                                  "train:\n"
                                  "  data: mnist\n"
                                  "  layers:\n"
                                  "  - {type: conv, outputs: 8, kernel: 3, pad: 1}\n"
                                  "  - {type: batch_norm}\n"
                                  "  - {type: relu}\n"
                                  "  - {type: max_pool, kernel: 3, stride: 2, partial: true}\n"
                                  "  - {type: dropout, rate: 0.25}\n"
                                  "  - {type: dense}\n"
                                  "  optimizer: {name: adamw, lr: 0.001, clip_norm: 1,\n"
                                  "    schedule: {name: cosine, warmup: 10, period: 1000}}\n"),
                             "job.yaml", &spec, NULL, &error));
    assert_true(text_equal(spec.train.model, TEXT("layers")));
    assert_true(text_equal(spec.train.loss, TEXT("cross_entropy")));
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &json);
    ASSERT_OK(job_spec_read(arena, buffer_text(&json), &back, &error));
    assert_int_equal(back.train.layer_count, 6);
    const struct dataset_shape shape = {.channels = 1, .height = 28, .width = 28, .classes = 10};
    struct model_spec first, second;
    int layer;
    ASSERT_OK(job_train_model(&spec.train, &shape, &first, &layer, &error));
    ASSERT_OK(job_train_model(&back.train, &shape, &second, &layer, &error));
    assert_true(model_spec_equal(&first, &second));
    struct optimizer_options options;
    job_train_optimizer(&back.train, &options);
    assert_int_equal(options.kind, OPTIMIZER_ADAMW);
    assert_int_equal(options.schedule.kind, SCHEDULE_COSINE);
    assert_int_equal(options.schedule.period, 1000);
    assert_true(options.clip_norm == 1);
}

TEST(secrets_are_read_from_a_file_and_never_written)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_spec spec;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    ASSERT_OK(job_file_parse(arena, TEXT(MINIMAL "secrets: {AWS_SECRET_ACCESS_KEY: hidden}\n"),
                             "job.yaml", &spec, NULL, &error));
    assert_int_equal(spec.secret_count, 1);
    assert_true(text_equal(spec.secrets[0].value, TEXT("hidden")));
    job_spec_write(&spec, &json);
    ASSERT_OK(job_file_write(arena, &spec, &json, &error));
    job_spec_write_work(&spec, &json);
    assert_null(strstr(buffer_string(&json), "hidden"));
    assert_null(strstr(buffer_string(&json), "secrets"));
    ASSERT_OK(job_file_parse(arena, TEXT("name: a\nrun: env\nsecrets: {TOKEN: hidden, KEY: }\n"),
                             "job.yaml", &spec, NULL, &error));
    buffer_clear(&json);
    ASSERT_OK(job_file_write(arena, &spec, &json, &error));
    assert_null(strstr(buffer_string(&json), "hidden"));
    assert_non_null(strstr(buffer_string(&json), "secret_names: [KEY, TOKEN]"));
}

TEST(a_file_that_is_too_large_or_absent_is_refused)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    char *large = arena_alloc(arena, JOB_SPEC_SIZE_MAX + 1);
    memset(large, '#', JOB_SPEC_SIZE_MAX + 1);
    ASSERT_FAILS(job_file_parse(arena, (struct text){large, JOB_SPEC_SIZE_MAX + 1}, "job.yaml",
                                &spec, NULL, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(job_file_parse(arena, (struct text){NULL, 0}, "job.yaml", &spec, NULL, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(job_file_read(arena, "/nonexistent/job.yaml", &spec, NULL, &error),
                 ERROR_NOT_FOUND);
}

TEST(wishes_of_every_kind_are_read)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_file_parse(
        arena,
        TEXT("name: a\nruntime: torch\nrun: b\nnum_nodes: 2..8\n"
             "resources:\n"
             "  accelerators: {T4: 2}\n"
             "  bandwidth: 100\n"
             "  labels: [python3-torch, cuda-12]\n"
             "  network: open\n"
             "  install: wheels\n"
             "market: {start: cheapest before 2026-11-20T18:00Z, rush: true, max_rtt: 50ms,"
             " min_reliability: 0.9, min_speed: 50%, replace_lost: false}\n"),
        "job.yaml", &spec, NULL, &error));
    assert_int_equal(spec.num_nodes, 2);
    assert_int_equal(spec.num_nodes_max, 8);
    assert_true(text_equal(spec.resources.accelerators.model, TEXT("T4")));
    assert_int_equal(spec.resources.accelerators.count_milli, 2000);
    assert_int_equal(spec.resources.bandwidth_kbit, 100000);
    assert_true(text_equal(spec.resources.labels, TEXT("python3-torch,cuda-12")));
    assert_true(text_equal(spec.resources.network, TEXT("open")));
    assert_true(text_equal(spec.resources.install, TEXT("wheels")));
    assert_int_equal(spec.market.start.kind, JOB_START_CHEAPEST);
    assert_int_equal(spec.market.start.at_ms, INT64_C(1795197600000));
    assert_true(spec.market.rush);
    assert_false(spec.market.replace_lost);
    assert_int_equal(spec.market.max_rtt_ms, 50);
    assert_int_equal(spec.market.min_reliability_milli, 900);
    assert_int_equal(spec.market.min_speed_milli, 500);
}

TEST(who_brings_packages_wants_machines_that_install_them)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_file_parse(arena,
                             TEXT("name: a\nrun: b\nrequirements: ./requirements.txt\n"
                                  "wheels: [a-1-py3-none-any.whl, ./more/]\n"),
                             "job.yaml", &spec, NULL, &error));
    assert_true(text_equal(spec.requirements, TEXT("./requirements.txt")));
    assert_true(text_equal(spec.wheels, TEXT("a-1-py3-none-any.whl,./more/")));
    assert_true(text_equal(spec.resources.install, TEXT("wheels")));
}

TEST(sizes_may_name_their_unit)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct job_spec spec;
    ASSERT_OK(job_file_parse(
        arena, TEXT(MINIMAL "resources: {cpus: 50%, memory: 512MiB, disk_size: 2.5}\n"), "job.yaml",
        &spec, NULL, &error));
    assert_int_equal(spec.resources.cpus_milli.value, 500);
    assert_false(spec.resources.cpus_milli.is_at_least);
    assert_int_equal(spec.resources.memory_bytes.value, 512 << 20);
    assert_int_equal(spec.resources.disk_size_bytes, (5LL << 30) / 2);
}

TEST(all_mistakes_are_found_each_with_its_place)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer more AUTO_BUFFER;
    buffer_init(&more, 4096);
    struct job_spec spec;
    struct error error;
    ASSERT_FAILS(job_file_parse(arena,
                                TEXT("num_node: 3\n"
                                     "resources: {cpus: none, memory: 1+}\n"
                                     "train:\n"
                                     "  model: lenet6\n"
                                     "  batch: 0\n"
                                     "inputs: [{name: a, recods: 1}, 7]\n"),
                                "job.yaml", &spec, &more, &error),
                 ERROR_INVALID);
    assert_string_equal(error.message,
                        "job.yaml:1:1: unknown field \"num_node\"; did you mean \"num_nodes\"?");
    const char *const found[] = {
        "job.yaml:2:19: resources.cpus: ",     "job.yaml:4:10: train.model: ",
        "job.yaml:5:10: train.batch: ",        "train.data: is missing",
        "inputs[0]: unknown field \"recods\"", "inputs[1]: must be a mapping",
        "job.yaml:1:1: name: is missing"};
    const char *at = buffer_string(&more);
    for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
        at = strstr(at, found[i]);
        assert_non_null(at);
    }
}

TEST(what_fields_rule_out_together_is_found_whole)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer more AUTO_BUFFER;
    buffer_init(&more, 4096);
    struct job_spec spec;
    struct error error;
    ASSERT_FAILS(job_file_parse(arena,
                                TEXT("name: a\n"
                                     "num_nodes: 2\n"
                                     "train: {model: lenet5, data: mnist, optimizer: {lr: 0.1}}\n"
                                     "sync:\n"
                                     "  policy: bsp\n"
                                     "  slack: 3\n"
                                     "  density: 0\n"
                                     "  trim: 0.5\n"
                                     "  verify: 0.1\n"
                                     "  servers: 2\n"
                                     "market: {max_run_time: 1m, expected_run_time: 2m}\n"),
                                "job.yaml", &spec, &more, &error),
                 ERROR_INVALID);
    assert_string_equal(error.message, "job.yaml:6:10: sync.slack: policy bsp has no such setting");
    const char *const found[] = {"job.yaml:8:9: sync.trim: must be above 0",
                                 "job.yaml:7:12: sync.density: must be above 0",
                                 "job.yaml:9:11: sync.verify: needs num_nodes of 3",
                                 "job.yaml:9:11: sync.verify: needs one parameter server",
                                 "job.yaml:11:47: market.expected_run_time: must not be longer"};
    const char *at = buffer_string(&more);
    for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
        at = strstr(at, found[i]);
        assert_non_null(at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fields_rule_out_together_is_found_whole),
        cmocka_unit_test(all_mistakes_are_found_each_with_its_place),
        cmocka_unit_test(a_whole_job_file_is_read),
        cmocka_unit_test(json_is_yaml_too),
        cmocka_unit_test(every_mistake_is_told_with_its_place),
        cmocka_unit_test(a_network_of_ones_own_is_read_and_written),
        cmocka_unit_test(secrets_are_read_from_a_file_and_never_written),
        cmocka_unit_test(a_file_that_is_too_large_or_absent_is_refused),
        cmocka_unit_test(wishes_of_every_kind_are_read),
        cmocka_unit_test(who_brings_packages_wants_machines_that_install_them),
        cmocka_unit_test(sizes_may_name_their_unit),
    };
    return cmocka_run_group_tests_name("job_file", tests, NULL, NULL);
}
