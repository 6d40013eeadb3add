/* covers predict_request.c, predict_answer.c, predictor.c, words.c */
#include "base/file.h"
#include "testing/testing.h"
#include "train/model_card.h"
#include "train/predict_json.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 1 << 16 };

/* A model on disk, and the predictor that reads it. */
struct scene {
    char folder[48];
    struct predictor *predictor;
    struct arena *arena;
    struct buffer answer;
    struct error error;
};

static void scene_open(struct scene *scene, const struct model_card *card, const float *parameters,
                       const char *columns, bool is_raw)
{
    struct error error;
    *scene = (struct scene){.folder = "/tmp/predict_json_test.XXXXXX", .arena = arena_new(0)};
    assert_non_null(mkdtemp(scene->folder));
    buffer_init(&scene->answer, ANSWER_MAX);
    ASSERT_OK(model_card_export(scene->folder, card, parameters, &error));
    if (columns) {
        const struct text part = text_of(columns);
        ASSERT_OK(file_replace(arena_format(scene->arena, "%s/columns.json", scene->folder), &part,
                               1, 0600, &error));
    }
    ASSERT_OK(predictor_open(scene->folder, is_raw, &scene->predictor, &error));
}

static void scene_close(struct scene *scene)
{
    static const char *const names[] = {"model.safetensors", "card.json", "columns.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(arena_format(scene->arena, "%s/%s", scene->folder, names[i]));
    assert_int_equal(rmdir(scene->folder), 0);
    predictor_free(scene->predictor);
    buffer_done(&scene->answer);
    arena_free(scene->arena);
}

/* NULL: it failed, and scene->error says why. */
static const char *ask(struct scene *scene, enum predict_verb verb, const char *body)
{
    struct predict_request request;
    struct json_writer writer;
    buffer_clear(&scene->answer);
    json_writer_init(&writer, &scene->answer);
    if (predict_request_read(scene->arena, scene->predictor, verb, text_of(body), 4, &request,
                             &scene->error) < 0 ||
        predict_answer(scene->predictor, &request, scene->arena, &writer, &scene->error) < 0) {
        assert_int_equal(scene->error.code, ERROR_INVALID);
        return NULL;
    }
    return buffer_string(&scene->answer);
}

static void assert_refused(struct scene *scene, enum predict_verb verb, const char *body,
                           const char *why)
{
    assert_null(ask(scene, verb, body));
    if (!strstr(scene->error.message, why))
        fail_msg("\"%s\" is not in \"%s\"", why, scene->error.message);
}

/* Two classes of rows of three; logits x0 - x2 and 2 x1. */
static void rows_open(struct scene *scene, const char *columns, bool is_raw)
{
    static const float parameters[] = {1, 0, -1, 0, 2, 0, 0, 0};
    struct model_card card = {.data = "rows.csv", .policy = "bsp"};
    model_spec_default(MODEL_LOGISTIC, &card.spec);
    card.spec.height = 1;
    card.spec.width = 3;
    card.spec.classes = 2;
    card.spec.layers[0].outputs = 2;
    scene_open(scene, &card, parameters, columns, is_raw);
}

TEST(rows_and_columns_are_answered_in_kind)
{
    struct scene scene;
    rows_open(&scene, NULL, false);
    assert_string_equal(ask(&scene, PREDICT, "{\"instances\":[[3,1,1],{\"input\":[0,2,1]}]}"),
                        "{\"predictions\":[{\"output\":[2,2],\"probabilities\":[0.5,0.5],"
                        "\"classes\":0},{\"output\":[-1,4],\"probabilities\":[0.006692851,"
                        "0.9933072],\"classes\":1}]}");
    assert_string_equal(ask(&scene, PREDICT, "{\"inputs\":[[3,1,1]]}"),
                        "{\"outputs\":{\"output\":[[2,2]],\"probabilities\":[[0.5,0.5]],"
                        "\"classes\":[0]}}");
    assert_string_equal(
        ask(&scene, PREDICT,
            "{\"signature_name\":\"serving_default\",\"inputs\":{\"input\":[[3,1,1]]}}"),
        "{\"outputs\":{\"output\":[[2,2]],\"probabilities\":[[0.5,0.5]],\"classes\":[0]}}");
    assert_string_equal(ask(&scene, CLASSIFY, "{\"examples\":[[3,1,1]]}"),
                        "{\"result\":[[[\"0\",0.5],[\"1\",0.5]]]}");
    scene_close(&scene);
}

TEST(what_does_not_fit_is_told_with_its_place)
{
    struct scene scene;
    rows_open(&scene, NULL, false);
    assert_refused(&scene, PREDICT, "", "no JSON object");
    assert_refused(&scene, PREDICT, "[1]", "no JSON object");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,2,3]", "no JSON: ");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,2,3]]} x", "no JSON: ");
    assert_refused(&scene, PREDICT, "{}", "\"instances\" is missing");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,2,3]],\"inputs\":[[1,2,3]]}", "not both");
    assert_refused(&scene, PREDICT, "{\"instances\":7}", "no list of inputs");
    assert_refused(&scene, PREDICT, "{\"instances\":[]}", "0 inputs are not from 1 to 4");
    assert_refused(&scene, PREDICT, "{\"instances\":[1,1,1,1,1]}", "5 inputs are not from 1 to 4");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,2,3],[1,2]]}",
                   "instances[1]: 2 values where the model takes 3: an input is [3]");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,\"2\",3]]}",
                   "instances[0][1]: a number is wanted, not string");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,null,3]]}", "not null");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,1e300,3]]}", "too large");
    assert_refused(&scene, PREDICT, "{\"instances\":[5]}", "a list of 3 is wanted");
    assert_refused(&scene, PREDICT, "{\"instances\":[5]", "no JSON: it ends in the middle");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"b64\":\"AA==\"}]}", "not b64");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1}]}", "columns have no names");
    assert_refused(&scene, PREDICT, "{\"instances\":[[1,2,3]],\"signature_name\":\"other\"}",
                   "serving_default");
    assert_refused(&scene, PREDICT, "{\"instances\":[[[[[[[[[[1]]]]]]]]]]}", "nesting too deep");
    assert_refused(&scene, CLASSIFY, "{\"instances\":[[1,2,3]]}", "\"examples\" is missing");
    assert_refused(&scene, REGRESS, "{\"examples\":[[1,2,3]]}", "does not tell one number");
    scene_close(&scene);
}

static const char columns[] =
    "{\"form\":\"floats\",\"target\":\"class\",\"label\":\"kind\",\"classes\":[\"cat\",\"dog\"],"
    "\"features\":[{\"name\":\"a\",\"mean\":10,\"deviation\":2},{\"name\":\"b\",\"mean\":0,"
    "\"deviation\":1},{\"name\":\"c\",\"mean\":0,\"deviation\":4}]}\n";

TEST(a_table_is_asked_in_its_own_units_and_names)
{
    struct scene scene;
    rows_open(&scene, columns, false);
    assert_int_equal(predictor_units(scene.predictor), PREDICTOR_UNITS_COLUMNS);
    /* (12 - 10) / 2 - 4 / 4 and 2 * 1 */
    const char *answer = ask(&scene, PREDICT, "{\"instances\":[{\"c\":4,\"a\":12,\"b\":1}]}");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "\"output\":[0,2]"));
    assert_non_null(strstr(answer, "\"classes\":\"dog\""));
    answer = ask(&scene, CLASSIFY, "{\"examples\":[[12,1,4]]}");
    assert_true(answer && strncmp(answer, "{\"result\":[[[\"cat\",0.119", 23) == 0);
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":12,\"b\":1}]}",
                   "instances[0]: column \"c\" is missing");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1,\"b\":1,\"c\":1,\"d\":1}]}",
                   "instances[0]: the model has no column \"d\"");
    scene_close(&scene);

    rows_open(&scene, columns, /* is_raw= */ true);
    answer = ask(&scene, PREDICT, "{\"instances\":[[1,1,1]]}");
    assert_true(answer && strstr(answer, "\"output\":[0,2]"));
    scene_close(&scene);
}

TEST(categories_are_told_by_their_words)
{
    static const char words[] =
        "{\"form\":\"floats\",\"target\":\"class\",\"label\":\"kind\",\"classes\":[\"cat\",\"dog\"]"
        ","
        "\"features\":[{\"name\":\"a\",\"mean\":10,\"deviation\":2},{\"name\":\"home=New York\","
        "\"mean\":0,\"deviation\":1},{\"name\":\"home=7\",\"mean\":0,\"deviation\":1}]}\n";
    struct scene scene;
    rows_open(&scene, words, false);
    static const struct {
        const char *by_word, *by_place;
    } alike[] = {
        {"{\"home\":\"New York\",\"a\":12}", "[12,1,0]"},
        {"{\"a\":12,\"home\":7}", "[12,0,1]"},
        {"{\"a\":12,\"home\":null}", "[12,0,0]"},
        {"{\"a\":12,\"home\":\"NA\"}", "[12,0,0]"},
        {"{\"a\":12,\"home=New York\":1,\"home=7\":0}", "[12,1,0]"},
    };
    for (size_t i = 0; i < sizeof(alike) / sizeof(*alike); i++) {
        const char *by_word = ask(
            &scene, PREDICT, arena_format(scene.arena, "{\"instances\":[%s]}", alike[i].by_word));
        assert_non_null(by_word);
        by_word = arena_format(scene.arena, "%s", by_word);
        const char *by_place = ask(
            &scene, PREDICT, arena_format(scene.arena, "{\"instances\":[%s]}", alike[i].by_place));
        assert_non_null(by_place);
        assert_string_equal(by_word, by_place);
    }
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1,\"home\":\"Oslo\"}]}",
                   "instances[0]: \"home\": the model has learnt no word \"Oslo\"");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1,\"home\":[1]}]}",
                   "\"home\": a word is wanted");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1,\"home\":\"7\",\"b\":1}]}",
                   "instances[0]: the model has no column \"b\"");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1,\"home\":\"7\",\"home=7\":1}]}",
                   "3 names where the model has 2 columns");
    assert_refused(&scene, PREDICT, "{\"instances\":[{\"a\":1}]}",
                   "column \"home\" is missing: give one of its words, as \"New York\"");
    scene_close(&scene);
}

TEST(numbers_come_back_in_their_units)
{
    static const float parameters[] = {1, 2, 3, 0.5F};
    struct scene scene;
    struct model_card card = {.data = "houses.csv", .policy = "bsp"};
    model_spec_default(MODEL_LINEAR, &card.spec);
    card.spec.channels = card.spec.height = 1;
    card.spec.width = 3;
    card.spec.values = 1;
    card.spec.layers[0].outputs = 1;
    scene_open(&scene, &card, parameters,
               "{\"classes\":[],\"features\":[],\"target_mean\":100,\"target_deviation\":10}",
               false);
    assert_string_equal(ask(&scene, PREDICT, "{\"instances\":[[1,1,1]]}"),
                        "{\"predictions\":[[165]]}");
    assert_string_equal(ask(&scene, PREDICT, "{\"inputs\":[[1,1,1],[0,0,0]]}"),
                        "{\"outputs\":[[165],[105]]}");
    assert_string_equal(ask(&scene, REGRESS, "{\"examples\":[[0,0,0]]}"), "{\"result\":[105]}");
    assert_refused(&scene, CLASSIFY, "{\"examples\":[[0,0,0]]}", "tells no classes");
    scene_close(&scene);
}

TEST(images_are_nested_or_flat_bytes)
{
    static float parameters[2 * 4 + 2];
    struct scene scene;
    struct model_card card = {.data = "dots", .policy = "bsp", .mean = 0.5, .deviation = 0.25};
    model_spec_default(MODEL_LOGISTIC, &card.spec);
    card.spec.height = card.spec.width = 2;
    card.spec.classes = 2;
    card.spec.layers[0].outputs = 2;
    parameters[0] = 1; /* the first logit is the first pixel */
    scene_open(&scene, &card, parameters, NULL, false);
    const char *answer = ask(&scene, PREDICT, "{\"instances\":[[[[255,0],[0,0]]],[0,1,2,3]]}");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "{\"output\":[2,0]"));  /* (1 - 0.5) / 0.25 */
    assert_non_null(strstr(answer, "{\"output\":[-2,0]")); /* (0 - 0.5) / 0.25 */
    assert_refused(&scene, PREDICT, "{\"instances\":[[[[1,2],[3]]]]}",
                   "instances[0][0][1]: 1 values where the model takes 2: an input is [1, 2, 2]");
    struct json_writer writer;
    buffer_clear(&scene.answer);
    json_writer_init(&writer, &scene.answer);
    predict_metadata_write(&writer, scene.predictor, "dots");
    assert_non_null(strstr(buffer_string(&scene.answer),
                           "\"input\":{\"dtype\":\"DT_FLOAT\",\"tensor_shape\":{\"dim\":[{\"size\":"
                           "\"-1\",\"name\":\"\"},{\"size\":\"1\",\"name\":\"\"},"));
    assert_non_null(strstr(buffer_string(&scene.answer), "\"units\":\"bytes\""));
    scene_close(&scene);
}

TEST(tokens_are_whole_and_known_and_steps_are_told)
{
    struct scene scene;
    struct model_card card = {.data = "text", .policy = "bsp"};
    model_spec_default(MODEL_CHAR_LSTM, &card.spec);
    card.spec.width = 3;
    card.spec.vocabulary = card.spec.classes = 5;
    card.spec.layers[card.spec.layer_count - 1].outputs = 5;
    struct parameter_table table;
    struct error error;
    ASSERT_OK(model_spec_layout(&card.spec, &table, &error));
    float *parameters = calloc(table.float_count, sizeof(float));
    assert_non_null(parameters);
    scene_open(&scene, &card, parameters, NULL, false);
    free(parameters);
    const char *answer = ask(&scene, PREDICT, "{\"instances\":[[0,4,2]]}");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "\"classes\":[0,0,0]"));
    assert_refused(&scene, PREDICT, "{\"instances\":[[0,5,2]]}",
                   "instances[0][1]: 5 is no whole number below 5");
    assert_refused(&scene, PREDICT, "{\"instances\":[[0,1.5,2]]}", "1.5 is no whole number");
    scene_close(&scene);
}

/* A model of `width` tokens below `vocabulary`, with what lies beside it. */
static void texts_open(struct scene *scene, uint32_t width, uint32_t vocabulary, const char *beside)
{
    struct model_card card = {.data = "texts.txt", .policy = "bsp"};
    struct parameter_table table;
    struct error error;
    struct arena *arena = arena_new(0);
    ASSERT_OK(model_spec_read(
        arena,
        TEXT("{\"kind\":\"layers\",\"loss\":\"cross_entropy\",\"channels\":1,\"height\":1,"
             "\"width\":3,\"classes\":2,\"vocabulary\":5,\"layers\":[{\"type\":\"embedding\","
             "\"outputs\":2},{\"type\":\"average_pool\"},{\"type\":\"dense\"}]}"),
        &card.spec, &error));
    card.spec.width = width;
    card.spec.vocabulary = vocabulary;
    arena_free(arena);
    ASSERT_OK(model_spec_layout(&card.spec, &table, &error));
    float *parameters = calloc(table.float_count, sizeof(*parameters));
    assert_non_null(parameters);
    scene_open(scene, &card, parameters, beside, false);
    free(parameters);
}

static void assert_tokens(struct scene *scene, const char *body, const float *tokens, size_t count)
{
    struct predict_request request;
    struct error error;
    ASSERT_OK(predict_request_read(scene->arena, scene->predictor, PREDICT, text_of(body), 4,
                                   &request, &error));
    assert_int_equal(request.count * predictor_input_size(scene->predictor), count);
    assert_memory_equal(request.inputs, tokens, count * sizeof(*tokens));
}

TEST(texts_become_the_tokens_that_the_model_learnt_by)
{
    struct scene scene;
    texts_open(&scene, 4, 6, "{\"unit\":\"words\",\"words\":[\"a\",\"fine\",\"don't\"]}");
    assert_tokens(&scene, "{\"instances\":[\"A fine, FINE zebra\",\"don't\"]}",
                  (const float[]){2, 3, 3, 1, 4, 0, 0, 0}, 8);
    assert_tokens(&scene, "{\"inputs\":[{\"input\":\"a a a a fine\"}, [0, 1, 2, 3]]}",
                  (const float[]){2, 2, 2, 2, 0, 1, 2, 3}, 8);
    const char *answer = ask(&scene, PREDICT, "{\"instances\":[\"a fine film\"]}");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "\"probabilities\":[0.5,0.5]"));
    scene_close(&scene);
    /* Single bytes: the new line, and the byte 233 as the character of that number. */
    texts_open(&scene, 3, 5, "{\"unit\":\"characters\",\"words\":[\"e\",\"\\n\",\"\\u00e9\"]}");
    assert_tokens(&scene, "{\"instances\":[\"\\ne\"]}", (const float[]){3, 2, 0}, 3);
    assert_tokens(&scene, "{\"instances\":[\"\\u00e9e\"]}", (const float[]){1, 1, 2}, 3);
    scene_close(&scene);
    texts_open(&scene, 2, 12, "{\"unit\":\"words\",\"buckets\":10}");
    const float hash = 2 + (float)(import_hash(TEXT(""), TEXT("film")) % 10);
    assert_tokens(&scene, "{\"instances\":[\"Film\"]}", (const float[]){hash, 0}, 2);
    scene_close(&scene);
}

TEST(a_text_is_refused_where_no_words_are_known)
{
    struct scene scene;
    texts_open(&scene, 4, 6, NULL);
    assert_refused(&scene, PREDICT, "{\"instances\":[\"a\"]}", "the model's words are not known");
    scene_close(&scene);
    /* More words than the model has places for are another model's. */
    texts_open(&scene, 4, 4, "{\"words\":[\"a\",\"b\",\"c\"]}");
    assert_refused(&scene, PREDICT, "{\"instances\":[\"a\"]}", "the model's words are not known");
    scene_close(&scene);
    rows_open(&scene, NULL, false);
    assert_refused(&scene, PREDICT, "{\"instances\":[\"a\"]}", "takes numbers, not a text");
    scene_close(&scene);
}

/* Whoever wrote the model may say that it takes bytes of images; its places are no such. */
TEST(places_of_sparse_rows_are_never_scaled)
{
    struct scene scene;
    struct model_card card = {.data = "rows.svm", .policy = "bsp", .mean = 0.5, .deviation = 1e-9};
    model_spec_default(MODEL_LOGISTIC, &card.spec);
    card.spec.height = 2;
    card.spec.width = 2;
    card.spec.vocabulary = 5;
    card.spec.classes = 2;
    static const float parameters[5 * 2 + 2] = {[6] = 1, [9] = 2};
    scene_open(&scene, &card, parameters, NULL, false);
    assert_int_equal(predictor_units(scene.predictor), PREDICTOR_UNITS_MODEL);
    const char *answer = ask(&scene, PREDICT, "{\"instances\":[[[3,4],[1,0.5]]]}");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "\"output\":[1,1]"));
    scene_close(&scene);
}

TEST(an_answer_of_too_many_numbers_is_refused_before_it_is_made)
{
    struct scene scene;
    rows_open(&scene, NULL, false);
    static float inputs[3];
    struct json_writer writer;
    struct predict_request request = {
        .verb = PREDICT, .inputs = inputs, .count = PREDICT_OUTPUTS_MAX / 2 + 1};
    json_writer_init(&writer, &scene.answer);
    assert_int_equal(predict_answer(scene.predictor, &request, scene.arena, &writer, &scene.error),
                     -1);
    assert_non_null(strstr(scene.error.message, "send fewer inputs"));
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_columns_are_answered_in_kind),
        cmocka_unit_test(what_does_not_fit_is_told_with_its_place),
        cmocka_unit_test(a_table_is_asked_in_its_own_units_and_names),
        cmocka_unit_test(categories_are_told_by_their_words),
        cmocka_unit_test(numbers_come_back_in_their_units),
        cmocka_unit_test(images_are_nested_or_flat_bytes),
        cmocka_unit_test(tokens_are_whole_and_known_and_steps_are_told),
        cmocka_unit_test(texts_become_the_tokens_that_the_model_learnt_by),
        cmocka_unit_test(a_text_is_refused_where_no_words_are_known),
        cmocka_unit_test(places_of_sparse_rows_are_never_scaled),
        cmocka_unit_test(an_answer_of_too_many_numbers_is_refused_before_it_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
