/* Any bytes as a request to a model of images, of a table or of texts: refused with its reason, or
 * numbers that the model answers. The first two bytes choose the model and the verb. */
#include "base/assert.h"
#include "base/file.h"
#include "train/model.h"
#include "train/model_card.h"
#include "train/predict_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODEL_COUNT = 3, PARAMETERS_MAX = 256, INPUTS_MAX = 3 };

static void write_file(struct arena *arena, const char *folder, const char *content)
{
    struct error error;
    const struct text part = text_of(content);
    ASSERT(file_replace(arena_format(arena, "%s/columns.json", folder), &part, 1, 0600, &error) ==
           0);
}

static struct predictor *model_of(const char *spec_json, const char *columns)
{
    static const char *const names[] = {"model.safetensors", "card.json", "columns.json"};
    static float parameters[PARAMETERS_MAX];
    struct error error;
    struct arena *arena = arena_new(0);
    struct predictor *predictor = NULL;
    struct model_card card = {.data = "fuzz"};
    char folder[] = "/tmp/predict_request_fuzz.XXXXXX";
    for (int i = 0; i < PARAMETERS_MAX; i++)
        parameters[i] = (float)(i % 5) - 2;
    ASSERT(mkdtemp(folder) != NULL);
    ASSERT(model_spec_read(arena, text_of(spec_json), &card.spec, &error) == 0);
    ASSERT(model_card_export(folder, &card, parameters, &error) == 0);
    if (columns)
        write_file(arena, folder, columns);
    ASSERT(predictor_open(folder, /* is_raw= */ false, &predictor, &error) == 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(arena_format(arena, "%s/%s", folder, names[i]));
    rmdir(folder);
    arena_free(arena);
    return predictor;
}

static struct predictor *model_at(int index)
{
    static struct predictor *opened[MODEL_COUNT];
    static const struct {
        const char *spec, *columns;
    } models[MODEL_COUNT] = {
        {"{\"kind\":\"layers\",\"loss\":\"cross_entropy\",\"channels\":1,\"height\":2,\"width\":3,"
         "\"classes\":2,\"layers\":[{\"type\":\"dense\"}]}",
         NULL},
        {"{\"kind\":\"layers\",\"loss\":\"cross_entropy\",\"channels\":1,\"height\":1,\"width\":3,"
         "\"classes\":2,\"layers\":[{\"type\":\"dense\"}]}",
         "{\"classes\":[\"no\",\"yes\"],\"features\":[{\"name\":\"x\",\"mean\":1,\"deviation\":2},"
         "{\"name\":\"c=a\",\"mean\":0,\"deviation\":1},"
         "{\"name\":\"c=b\",\"mean\":0,\"deviation\":1}]}"},
        {"{\"kind\":\"layers\",\"loss\":\"cross_entropy\",\"channels\":1,\"height\":1,\"width\":4,"
         "\"classes\":2,\"vocabulary\":5,\"layers\":[{\"type\":\"embedding\",\"outputs\":2},"
         "{\"type\":\"average_pool\"},{\"type\":\"dense\"}]}",
         "{\"unit\":\"words\",\"words\":[\"a\",\"fine\",\"film\"]}"},
    };
    if (!opened[index])
        opened[index] = model_of(models[index].spec, models[index].columns);
    return opened[index];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct predict_request request;
    if (size < 2)
        return 0;
    struct predictor *predictor = model_at(data[0] % MODEL_COUNT);
    const enum predict_verb verb = data[1] % PREDICT_VERB_COUNT;
    const struct text body = {(const char *)data + 2, size - 2};
    struct arena *arena = arena_new(0);
    struct buffer answer AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&answer, 1 << 16);
    json_writer_init(&writer, &answer);
    if (predict_request_read(arena, predictor, verb, body, INPUTS_MAX, &request, &error) == 0) {
        ASSERT(request.count >= 1 && request.count <= INPUTS_MAX);
        const size_t each = predictor_input_size(predictor);
        for (size_t i = 0; i < request.count * each; i++)
            ASSERT(isfinite(request.inputs[i]) &&
                   (!predictor_is_whole(predictor, i % each) ||
                    (request.inputs[i] >= 0 &&
                     request.inputs[i] < (float)predictor_spec(predictor)->vocabulary)));
        if (predict_answer(predictor, &request, arena, &writer, &error) == 0)
            ASSERT(answer.size > 0);
    } else {
        ASSERT(error.code == ERROR_INVALID && error.message[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
