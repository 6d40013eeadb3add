/* covers predict_data.c, predict_table.c, predict_texts.c, predict_lines.c */
#include "train/model_card.h"
#include "train/predict_lines.h"
#include "train/reader_testing.h"

enum { TOLD_MAX = 1 << 16 };

/* A model on disk, and what it tells of files beside it. */
struct scene {
    struct scratch scratch;
    struct predictor *predictor;
    struct buffer told;
    struct predict_score score;
    struct error error;
    bool is_json, has_all, fills_means, is_raw;
};

static void scene_open(struct scene *scene, const struct model_spec *spec, const float *parameters,
                       const char *columns)
{
    struct error error;
    *scene = (struct scene){0};
    scratch_init(&scene->scratch);
    buffer_init(&scene->told, TOLD_MAX);
    const struct model_card card = {.spec = *spec, .data = "x", .policy = "local"};
    ASSERT_OK(model_card_export(scene->scratch.folder, &card, parameters, &error));
    if (columns)
        scratch_write(&scene->scratch, "columns.json", text_of(columns));
    ASSERT_OK(predictor_open(scene->scratch.folder, false, &scene->predictor, &error));
}

static void scene_close(struct scene *scene)
{
    predictor_free(scene->predictor);
    buffer_done(&scene->told);
    scratch_done(&scene->scratch);
}

static int collect(void *context, struct text lines, struct error *error)
{
    struct scene *scene = context;
    buffer_append(&scene->told, lines.data, lines.size);
    return buffer_check(&scene->told, error);
}

/* NULL: it failed, and scene->error says why. */
static const char *tell(struct scene *scene, const char *name, const char *bytes)
{
    AUTO(predict_lines) struct predict_lines *lines = NULL;
    scratch_write(&scene->scratch, name, text_of(bytes));
    buffer_clear(&scene->told);
    const struct predict_lines_options shown = {.predictor = scene->predictor,
                                                .is_json = scene->is_json,
                                                .has_all = scene->has_all,
                                                .write = collect,
                                                .context = scene};
    struct error error;
    ASSERT_OK(predict_lines_open(&shown, &lines, &error));
    const struct predict_data_options data = {.path = scene->scratch.path,
                                              .predictor = scene->predictor,
                                              .fills_means = scene->fills_means,
                                              .is_raw = scene->is_raw,
                                              .take = predict_lines_take,
                                              .context = lines};
    if (predict_data_read(&data, &scene->error) < 0 || predict_lines_end(lines, &scene->error) < 0)
        return NULL;
    scene->score = predict_lines_score(lines);
    return buffer_string(&scene->told);
}

static void assert_refused(struct scene *scene, const char *name, const char *bytes,
                           const char *why)
{
    assert_null(tell(scene, name, bytes));
    assert_says(&scene->error, why);
}

static struct model_spec spec_of(enum loss_kind loss, uint64_t width, uint64_t outputs)
{
    const bool is_number = loss == LOSS_MSE;
    return (struct model_spec){
        .kind = MODEL_LAYERS,
        .loss = loss,
        .channels = 1,
        .height = 1,
        .width = width,
        .classes = is_number ? 0 : outputs,
        .values = is_number ? outputs : 0,
        .layer_count = 1,
        .layers = {{.type = LAYER_DENSE, .outputs = loss == LOSS_LOGISTIC ? 1 : outputs}}};
}

#define PLANTS                                                                                     \
    "{\"form\":\"floats\",\"target\":\"class\",\"label\":\"kind\",\"classes\":[\"-1\",\"1\"],"     \
    "\"features\":[{\"name\":\"tall\",\"mean\":10,\"deviation\":2},"                               \
    "{\"name\":\"soil=clay\",\"mean\":0,\"deviation\":1},"                                         \
    "{\"name\":\"soil=sand\",\"mean\":0,\"deviation\":1}]}"
/* The second class: by (tall - 10) / 2, and by sand; so far apart that no libm makes a difference.
 */
static const float plant_weights[] = {0, 0, 0, 1000, 0, 4000, 0, 0};

static void columns_are_found_by_name_and_scaled(void **state)
{
    struct scene scene;
    const struct model_spec spec = spec_of(LOSS_CROSS_ENTROPY, 3, 2);
    (void)state;
    scene_open(&scene, &spec, plant_weights, PLANTS);
    assert_string_equal(tell(&scene, "a.csv", "kind,id,soil,tall\n1,a,clay,10\n-1,b,clay,12\n"),
                        "index,prediction,probability\r\n0,-1,0.5\r\n1,1,1\r\n");
    assert_int_equal(scene.score.records, 2);
    assert_int_equal(scene.score.labelled, 2);
    assert_int_equal(scene.score.right, 0);
    scene.is_json = scene.has_all = true;
    assert_string_equal(tell(&scene, "b.csv", "tall;soil\n10;sand\n"),
                        "{\"index\":0,\"prediction\":\"1\",\"probability\":1,"
                        "\"probabilities\":{\"-1\":0,\"1\":1}}\n");
    assert_int_equal(scene.score.labelled, 0);
    scene.is_json = false;
    assert_string_equal(tell(&scene, "c.csv", "tall;soil\n"),
                        "index,prediction,probability,p(-1),p(1)\r\n");
    scene_close(&scene);
}

static void bad_rows_are_refused_with_their_place(void **state)
{
    struct scene scene;
    const struct model_spec spec = spec_of(LOSS_CROSS_ENTROPY, 3, 2);
    (void)state;
    scene_open(&scene, &spec, plant_weights, PLANTS);
    assert_refused(&scene, "a.csv", "tall,soil\n1,clay\nx,clay\n", "record 1 (line 3): column");
    assert_refused(&scene, "a.csv", "tall,soil\n1,peat\n", "\"peat\" is no word that the model");
    assert_refused(&scene, "a.csv", "tall,soil\n1\n", "record 0 (line 2): 1 fields, not 2");
    assert_refused(&scene, "a.csv", "tall\n1\n", "column \"soil\" is missing in the heading");
    assert_refused(&scene, "a.csv", "tall,soil\n?,clay\n", "--missing mean");
    assert_refused(&scene, "a.csv", "tall,soil\n1e99,clay\n", "is not a number");
    assert_refused(&scene, "a.txt", "a text\n", "takes numbers, and no texts");
    assert_refused(&scene, "a.libsvm", "1 1:1\n", "takes the columns of a table");
    scene.fills_means = true;
    assert_string_equal(tell(&scene, "a.csv", "tall,soil\n?,clay\n"),
                        "index,prediction,probability\r\n0,-1,0.5\r\n");
    scene_close(&scene);
}

static void numbers_are_told_in_their_unit_and_measured(void **state)
{
    struct scene scene;
    const struct model_spec spec = spec_of(LOSS_MSE, 1, 1);
    (void)state;
    /* In a file without a heading columns are called by their numbers. */
    scene_open(&scene, &spec, (const float[]){1, 0},
               "{\"form\":\"floats\",\"target\":\"number\",\"label\":\"2\",\"target_mean\":100,"
               "\"target_deviation\":10,\"features\":[{\"name\":\"1\",\"mean\":0,\"deviation\":2}]"
               "}");
    assert_string_equal(tell(&scene, "a.csv", "2,110\n4,124\n"),
                        "index,prediction\r\n0,110\r\n1,120\r\n");
    assert_int_equal(scene.score.labelled, 2);
    assert_float_equal((float)scene.score.error, 2.828427F, 1e-5F);
    assert_float_equal((float)scene.score.r2, 0.8367347F, 1e-6F);
    scene_close(&scene);
}

static void a_forecast_is_told_of_every_window(void **state)
{
    struct scene scene;
    struct model_spec spec = spec_of(LOSS_MSE, 1, 1);
    (void)state;
    spec.height = 2;
    scene_open(&scene, &spec, (const float[]){1, 10, 0},
               "{\"form\":\"floats\",\"target\":\"number\",\"label\":\"y\",\"target_mean\":0,"
               "\"target_deviation\":1,\"features\":[{\"name\":\"y\",\"mean\":0,\"deviation\":1}]"
               "}");
    assert_string_equal(tell(&scene, "a.csv", "y\n1\n2\n3\n"),
                        "index,prediction\r\n0,21\r\n1,32\r\n");
    assert_int_equal(scene.score.labelled, 0);
    scene_close(&scene);
}

static void sparse_rows_are_laid_out_as_the_model_takes_them(void **state)
{
    struct scene scene;
    const struct model_spec spec = spec_of(LOSS_LOGISTIC, 3, 2);
    (void)state;
    scene_open(&scene, &spec, (const float[]){1000, -1000, 0, 0},
               "{\"form\":\"sparse\",\"target\":\"class\",\"classes\":[\"-1\",\"1\"]}");
    scene.has_all = true;
    assert_string_equal(tell(&scene, "a.libsvm", "+1 1:0.0 2:1\n-1 3:5\n7 1:2\n"),
                        "index,prediction,probability,p(-1),p(1)\r\n"
                        "0,-1,1,1,0\r\n1,-1,0.5,0.5,0.5\r\n"
                        "2,1,1,0,1\r\n");
    assert_int_equal(scene.score.right, 1);
    assert_int_equal(scene.score.unlearnt, 1);
    assert_refused(&scene, "a.libsvm", "1 9:1\n", "the model takes 3 places");
    assert_refused(&scene, "a.csv", "1,2,3\n", "takes sparse rows");
    scene_close(&scene);
}

static void without_columns_only_raw_numbers_are_taken(void **state)
{
    struct scene scene;
    const struct model_spec spec = spec_of(LOSS_MSE, 2, 1);
    (void)state;
    scene_open(&scene, &spec, (const float[]){1, 2, 0.5F}, NULL);
    assert_refused(&scene, "a.csv", "1,2\n", "put its columns.json there");
    scene.is_raw = true;
    assert_string_equal(tell(&scene, "a.csv", "1,2\n3,4\n"),
                        "index,prediction\r\n0,5.5\r\n1,11.5\r\n");
    assert_refused(&scene, "a.csv", "1,2,3,4\n", "4 columns, and the model takes 2 numbers");
    scene_close(&scene);
}

static void texts_become_the_words_it_learnt(void **state)
{
    struct scene scene;
    struct model_spec spec = {.kind = MODEL_LAYERS,
                              .loss = LOSS_CROSS_ENTROPY,
                              .channels = 1,
                              .height = 1,
                              .width = 1,
                              .vocabulary = 4,
                              .classes = 2,
                              .layer_count = 3,
                              .layers = {{.type = LAYER_EMBEDDING, .outputs = 1},
                                         {.type = LAYER_FLATTEN},
                                         {.type = LAYER_DENSE, .outputs = 2}}};
    (void)state;
    /* Tokens 2 and 3, "good" and "bad", weigh 1 and -1; the first class is for what is above 0. */
    scene_open(&scene, &spec, (const float[]){0, 0, 1, -1, 500, -500, 0, 0},
               "{\"form\":\"tokens\",\"target\":\"class\",\"classes\":[\"up\",\"down\"],"
               "\"unit\":\"words\",\"words\":[\"good\",\"bad\"]}");
    assert_string_equal(tell(&scene, "a.txt", "up\tGood one\ndown\tbad one\n"),
                        "index,prediction,probability\r\n0,up,1\r\n1,down,1\r\n");
    assert_int_equal(scene.score.right, 2);
    assert_string_equal(tell(&scene, "a.txt", "bad\n\n"),
                        "index,prediction,probability\r\n0,down,1\r\n");
    assert_int_equal(scene.score.labelled, 0);
    assert_refused(&scene, "a.txt", "up\tgood\nbad\n", "line 2: no tab");
    assert_refused(&scene, "a.csv", "1,2\n", "takes texts, and no table");
    scene_close(&scene);
}

static void a_margin_has_no_probabilities(void **state)
{
    struct scene scene;
    struct predict_lines *lines = NULL;
    const struct model_spec spec = spec_of(LOSS_HINGE, 3, 2);
    (void)state;
    scene_open(&scene, &spec, plant_weights, PLANTS);
    assert_string_equal(tell(&scene, "a.csv", "tall,soil\n12,clay\n"),
                        "index,prediction\r\n0,1\r\n");
    const struct predict_lines_options all = {.predictor = scene.predictor, .has_all = true};
    struct error error;
    ASSERT_FAILS(predict_lines_open(&all, &lines, &error), ERROR_INVALID);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_by_name_and_scaled),
        cmocka_unit_test(bad_rows_are_refused_with_their_place),
        cmocka_unit_test(numbers_are_told_in_their_unit_and_measured),
        cmocka_unit_test(a_forecast_is_told_of_every_window),
        cmocka_unit_test(sparse_rows_are_laid_out_as_the_model_takes_them),
        cmocka_unit_test(without_columns_only_raw_numbers_are_taken),
        cmocka_unit_test(texts_become_the_words_it_learnt),
        cmocka_unit_test(a_margin_has_no_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
