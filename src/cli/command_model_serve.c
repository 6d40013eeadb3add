/*
 * souk model serve: predictions of a trained model over HTTP, in TensorFlow Serving's REST shape.
 *
 * A small request is answered before the next is looked at; a large one by a thread of its own
 * (model_batch.h). All are bounded in inputs and bytes. Errors have "error", as there.
 */
#include "base/log.h"
#include "cli/listen.h"
#include "cli/model_batch.h"
#include "cli/output.h"
#include "net/http_server.h"
#include "train/predict_json.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum {
    ANSWER_SIZE_MAX = 256 << 20,
    BODY_SIZE_MAX = 16 << 20,
    BODY_SIZE_LARGE = 64 << 10, /* some milliseconds: others would wait for it */
    NUMBER_SIZE = 24,
};

struct serve_options {
    const char *model, *name, *listen, *tls_cert, *tls_key;
    bool is_behind_proxy, is_raw;
    uint64_t batch_max;
};

#define SERVE(member) offsetof(struct serve_options, member)
static const struct option serve_options[] = {
    {"model", OPTION_PATH, SERVE(model), "MODEL",
     .help = "A model.safetensors, a folder that holds one, or a checkpoint.",
     .is_positional = true, .is_required = true},
    {"name", OPTION_TEXT, SERVE(name), "NAME",
     .help = "What it is called in addresses; by default its kind: lenet5."},
    {"listen", OPTION_TEXT, SERVE(listen), "ADDRESS", "127.0.0.1:8501",
     "Where to listen; other than loopback only with TLS."},
    {"tls_cert", OPTION_PATH, SERVE(tls_cert), "FILE", .help = "Certificate (PEM) for HTTPS."},
    {"tls_key", OPTION_PATH, SERVE(tls_key), "FILE", .help = "Its key (PEM)."},
    {"behind_proxy", OPTION_FLAG, SERVE(is_behind_proxy),
     .help = "A proxy in front ends TLS: take plain HTTP on any address."},
    {"batch_max", OPTION_U64, SERVE(batch_max), "COUNT", "1024", "Inputs of one request at most.",
     .minimum = 1, .maximum = 65536},
    {"raw", OPTION_FLAG, SERVE(is_raw),
     .help = "Take numbers as the model does; without it bytes of images and columns of tables are "
             "scaled as in training."},
};

struct serving {
    const struct cli *cli;
    const struct serve_options *options;
    struct predictor *predictor;
    const char *name;
    struct loop *loop;
    struct http_server *http;
    struct model_batches *batches;
    size_t body_max;
};

/* ---- answers ----------------------------------------------------------------------------------
 */

/* A problem document (RFC 9457) that has TensorFlow Serving's "error" as well. */
static void reply_error(struct http_request *request, int status, const char *message)
{
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, 1 << 16);
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "type", "about:blank");
    json_field_string(&writer, "title", http_status_title(status));
    json_field_i64(&writer, "status", status);
    json_field_string(&writer, "detail", message);
    json_field_string(&writer, "error", message);
    json_object_end(&writer);
    http_reply_take(request, status, "application/problem+json", &body);
}

/* The model's name, and what follows its colon in `out_verb` (empty: nothing). */
static bool is_this_model(struct http_request *request, struct text segment,
                          const struct serving *serving, struct text *out_verb)
{
    struct text name = segment, verb = {0};
    struct text version = http_request_parameter(request, "version");
    if (version.size == 0) {
        text_cut(segment, ':', &name, &verb);
    } else {
        struct text number = version;
        text_cut(version, ':', &number, &verb);
        version = number;
    }
    *out_verb = verb;
    if (!text_equal(name, text_of(serving->name)) ||
        (version.size > 0 && !text_equal(version, TEXT("1")))) {
        char message[256];
        snprintf(message, sizeof(message),
                 "Servable not found for request: the model served here is \"%s\", version 1",
                 serving->name);
        reply_error(request, 404, message);
        return false;
    }
    return true;
}

static void handle_status(struct http_request *request, void *context)
{
    const struct serving *serving = context;
    struct text verb;
    if (!is_this_model(request, http_request_parameter(request, "name"), serving, &verb))
        return;
    if (verb.size > 0) {
        struct error error;
        if (http_reply_header(request, "Allow", "POST", &error) < 0)
            http_reply_error(request, &error);
        else
            reply_error(request, 405, "predictions are asked for by POST");
        return;
    }
    http_reply_static(request, 200, "application/json",
                      TEXT("{\"model_version_status\":[{\"version\":\"1\",\"state\":\"AVAILABLE\","
                           "\"status\":{\"error_code\":\"OK\",\"error_message\":\"\"}}]}"));
}

static void handle_metadata(struct http_request *request, void *context)
{
    const struct serving *serving = context;
    struct text verb;
    if (!is_this_model(request, http_request_parameter(request, "name"), serving, &verb))
        return;
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, 1 << 20);
    json_writer_init(&writer, &body);
    predict_metadata_write(&writer, serving->predictor, serving->name);
    http_reply_take(request, 200, "application/json", &body);
}

static int find_verb(struct text name, enum predict_verb *out_verb)
{
    for (int i = 0; predict_verb_names[i]; i++)
        if (text_equal(name, text_of(predict_verb_names[i]))) {
            *out_verb = (enum predict_verb)i;
            return 0;
        }
    return -1;
}

static void handle_predict(struct http_request *request, void *context)
{
    const struct serving *serving = context;
    struct text name;
    enum predict_verb verb;
    if (!is_this_model(request, http_request_parameter(request, "name"), serving, &name))
        return;
    if (find_verb(name, &verb) < 0) {
        reply_error(request, 404, "ask for :predict, :classify or :regress");
        return;
    }
    struct error error;
    const struct text asked = http_request_body(request);
    if (asked.size >= BODY_SIZE_LARGE) {
        if (model_batches_add(serving->batches, http_request_id(request), verb, asked, &error) < 0)
            reply_error(request, 503, error.message);
        return;
    }
    struct arena *arena = http_request_arena(request);
    struct predict_request wanted;
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&body, ANSWER_SIZE_MAX);
    json_writer_init(&writer, &body);
    if (predict_request_read(arena, serving->predictor, verb, asked,
                             (uint32_t)serving->options->batch_max, &wanted, &error) < 0 ||
        predict_answer(serving->predictor, &wanted, arena, &writer, &error) < 0) {
        reply_error(request, 400, error.message);
        return;
    }
    if (buffer_check(&body, &error) < 0)
        reply_error(request, 400, "the answer is too large: send fewer inputs");
    else
        http_reply_take(request, 200, "application/json", &body);
}

static void on_batch(void *context, uint64_t id, struct buffer *answer, const struct error *failure)
{
    const struct serving *serving = context;
    struct http_request *request = http_server_find(serving->http, id);
    if (!request)
        return; /* its client went away */
    if (failure)
        reply_error(request, 400, failure->message);
    else
        http_reply_take(request, 200, "application/json", answer);
}

static void handle_unknown(struct http_request *request, void *context)
{
    const struct serving *serving = context;
    char message[256];
    snprintf(message, sizeof(message), "Not found: try /v1/models/%s", serving->name);
    reply_error(request, 404, message);
}

/* Before the body comes, in place of the server's own bound: TensorFlow Serving's clients read
 * "error". */
static void on_headers(struct http_request *request, void *context)
{
    const struct serving *serving = context;
    const struct text length = http_request_header(request, "Content-Length");
    uint64_t size;
    struct error ignored; /* what is no number is none */
    if (!text_equal(http_request_method(request), TEXT("POST")))
        return;
    if (!length.data || text_parse_u64(length, &size, &ignored) < 0) {
        reply_error(request, 411, "say how long the body is: Content-Length");
    } else if (size > serving->body_max) {
        char message[160];
        snprintf(message, sizeof(message),
                 "the body has %" PRIu64 " bytes, more than %zu: send fewer inputs at once", size,
                 serving->body_max);
        reply_error(request, 413, message);
    }
}

static void on_done(const struct http_request *request, int status, void *context)
{
    const struct serving *serving = context;
    const struct text method = http_request_method(request), path = http_request_path(request);
    const int64_t now_ns = clock_monotonic_ns(loop_clock(serving->loop));
    log_event(LOG_DEBUG, "answered",
              "method=" TEXT_FORMAT " path=" TEXT_FORMAT " status=%d took_us=%" PRId64,
              TEXT_ARGS(method), TEXT_ARGS(path), status,
              (now_ns - http_request_started_ns(request)) / 1000);
}

/* ---- life -------------------------------------------------------------------------------------
 */

static void on_signal(void *context)
{
    const struct serving *serving = context;
    loop_stop(serving->loop);
}

/* What a full batch of numbers written out needs, within a maximum. */
static size_t body_max_of(const struct serving *serving)
{
    const size_t numbers = serving->options->batch_max * predictor_input_size(serving->predictor);
    const size_t wanted = 4096 + numbers * NUMBER_SIZE;
    return wanted < BODY_SIZE_MAX ? wanted : BODY_SIZE_MAX;
}

static int check_name(const char *name, struct error *error)
{
    for (const char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *c))
            return error_set(error, ERROR_INVALID,
                             "--name: letters, digits, '-', '_' and '.' only");
    return *name && strlen(name) <= 64
               ? 0
               : error_set(error, ERROR_INVALID, "--name: must be 1 to 64 characters");
}

static const char *input_text(const struct serving *serving)
{
    uint64_t shape[MODEL_INPUT_RANK_MAX];
    const uint32_t rank = model_spec_input_shape(predictor_spec(serving->predictor), shape);
    const char *text = "[";
    for (uint32_t i = 0; i < rank; i++)
        text = arena_format(serving->cli->arena, "%s%s%" PRIu64, text, i ? ", " : "", shape[i]);
    return arena_format(serving->cli->arena, "%s]", text);
}

static void show(const struct serving *serving, const char *url)
{
    static const char *const units[] = {
        [PREDICTOR_UNITS_MODEL] = "numbers as the model takes them",
        [PREDICTOR_UNITS_BYTES] = "bytes of images, 0 to 255",
        [PREDICTOR_UNITS_COLUMNS] = "the table's own numbers",
    };
    const struct cli *cli = serving->cli;
    struct predictor *predictor = serving->predictor;
    if (cli->common.json) {
        struct buffer line AUTO_BUFFER;
        struct json_writer writer;
        buffer_init(&line, 4096);
        json_writer_init(&writer, &line);
        json_object_begin(&writer);
        json_field_bool(&writer, "ready", true);
        json_field_string(&writer, "url", url);
        json_field_string(&writer, "name", serving->name);
        json_field_u64(&writer, "port", http_server_port(serving->http));
        json_object_end(&writer);
        output_json(buffer_text(&line));
        fflush(stdout);
        return;
    }
    output_note(cli, "%s: %s with %s parameters", serving->name,
                model_kind_name(predictor_spec(predictor)->kind),
                output_number(cli->arena, predictor_parameter_count(predictor)));
    if (predictor_takes_text(predictor))
        output_note(cli,
                    "  takes   texts, or %s of the numbers of their tokens, at most %" PRIu64
                    " at once",
                    input_text(serving), serving->options->batch_max);
    else
        output_note(cli, "  takes   %s of %s, at most %" PRIu64 " at once", input_text(serving),
                    units[predictor_units(predictor)], serving->options->batch_max);
    output_note(cli, "  listens %s", url);
    output_note(cli, "  try     curl -d '{\"instances\": [...]}' %s:predict", url);
    output_note(cli, "  ends    with Ctrl-C");
}

static int serve(struct serving *serving, struct error *error)
{
    const struct serve_options *options = serving->options;
    const struct http_route routes[] = {
        /* on_headers bounds the bodies */
        {"GET", "/v1/models/{name}", 0, handle_status},
        {"GET", "/v1/models/{name}/metadata", 0, handle_metadata},
        {"GET", "/v1/models/{name}/versions/{version}", 0, handle_status},
        {"GET", "/v1/models/{name}/versions/{version}/metadata", 0, handle_metadata},
        {"POST", "/v1/models/{name}", SIZE_MAX / 2, handle_predict},
        {"POST", "/v1/models/{name}/versions/{version}", SIZE_MAX / 2, handle_predict},
        {"GET", "/{rest...}", 0, handle_unknown},
        {"POST", "/{rest...}", SIZE_MAX / 2, handle_unknown},
    };
    struct tls_certificate certificate AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&certificate);
    struct http_server_options http = {
        .loop = serving->loop,
        .routes = routes,
        .route_count = sizeof(routes) / sizeof(*routes),
        .context = serving,
        .on_headers = on_headers,
        .on_done = on_done,
        .ignores_sigpipe = true,
    };
    const struct listen_options listen = {options->listen, options->tls_cert, options->tls_key,
                                          options->is_behind_proxy};
    if (listen_find(&listen, &http.listen, &certificate, error) < 0)
        return -1;
    if (options->tls_cert) {
        http.certificate_pem = buffer_string(&certificate.certificate_pem);
        http.key_pem = buffer_string(&certificate.key_pem);
    }
    const struct model_batches_options batches = {.loop = serving->loop,
                                                  .model = options->model,
                                                  .is_raw = options->is_raw,
                                                  .count_max = (uint32_t)options->batch_max,
                                                  .answer_size_max = ANSWER_SIZE_MAX,
                                                  .done = on_batch,
                                                  .context = serving};
    if (model_batches_open(&batches, &serving->batches, error) < 0)
        return -1;
    if (http_server_open(&http, &serving->http, error) < 0) {
        model_batches_free(TAKE(serving->batches));
        return -1;
    }
    char url[LISTEN_URL_SIZE];
    listen_url(&listen, &http.listen, http_server_port(serving->http), url);
    show(serving, arena_format(serving->cli->arena, "%s/v1/models/%s", url, serving->name));
    const int result = loop_run(serving->loop, error);
    model_batches_free(TAKE(serving->batches));
    http_server_free(serving->http);
    return result;
}

static int open_and_serve(struct serving *serving, struct error *error)
{
    AUTO(predictor) struct predictor *predictor = NULL;
    if (predictor_open(serving->options->model, serving->options->is_raw, &predictor, error) < 0)
        return -1;
    serving->predictor = predictor;
    serving->name = serving->options->name ? serving->options->name
                                           : model_kind_name(predictor_spec(predictor)->kind);
    serving->body_max = body_max_of(serving);
    return serve(serving, error);
}

static int run_serve(void *context, const void *options, struct error *error)
{
    AUTO(loop) struct loop *loop = NULL;
    struct serving serving = {.cli = context, .options = options};
    struct loop_signal *term = NULL, *interrupt = NULL;
    signal(SIGPIPE, SIG_IGN);
    if (serving.options->name && check_name(serving.options->name, error) < 0)
        return -1;
    if (loop_open(&clock_system, &loop, error) < 0)
        return -1;
    serving.loop = loop;
    /* Before the model: libraries that compute it start threads, and a signal that these do not
     * block would end the process. */
    int result = loop_signal_open(loop, SIGTERM, on_signal, &serving, &term, error);
    if (result == 0)
        result = loop_signal_open(loop, SIGINT, on_signal, &serving, &interrupt, error);
    if (result == 0)
        result = open_and_serve(&serving, error);
    loop_signal_free(term);
    loop_signal_free(interrupt);
    return result;
}

const struct command command_model_serve = {
    .name = "model serve",
    .summary = "Answers predictions of a trained model over HTTP.",
    .details = "The REST shape of TensorFlow Serving: GET /v1/models/NAME and .../metadata, POST "
               "/v1/models/NAME:predict with \"instances\" or \"inputs\", :classify and :regress "
               "with \"examples\". Inputs are in the data's own units: bytes of images, columns of "
               "the table by name, texts as they are. With --json one line with the address is "
               "printed once requests "
               "are taken.",
    .example = "souk model serve model.safetensors --name digits",
    COMMAND_OPTIONS(serve_options, serve_options),
    .run = run_serve,
};
