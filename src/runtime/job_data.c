/*
 * What a job says of its data: the field tables, what no single field can say, and the shape.
 */
#include "runtime/job_model.h"
#include "runtime/job_model_internal.h"
#include "train/dataset_catalogue.h"

#include <ctype.h>
#include <string.h>

static const char *const formats[] = {"cifar",  "cifar-strips", "csv",  "idx", "images",
                                      "libsvm", "npy",          "text", NULL}; /* of train/ */
static const char *const category_ways[] = {"refuse", "one-hot", "hashed", NULL};
static const char *const units[] = {"words", "characters", NULL};
static const char *const word_ways[] = {"frequent", "hashed", NULL};

static const struct job_field read_fields[] = {
    {"format", JOB_FIELD_WORD, offsetof(struct job_read, format),
     .help = "What the file is; by default found out by its content and name.", .choices = formats},
    {"missing", JOB_FIELD_SCRIPT, offsetof(struct job_read, missing),
     .help =
         "Numbers that are missing: refuse the file, drop the row, take the column's mean, or a "
         "number.",
     .maximum = 31},
    {"categories", JOB_FIELD_WORD, offsetof(struct job_read, categories),
     .help = "Columns of words: refuse the file; one-hot: a place for each word; hashed: a sparse "
             "row with 2^hash_bits places for all.",
     .choices = category_ways},
    {"category_columns", JOB_FIELD_SCRIPT, offsetof(struct job_read, category_columns),
     .help = "Columns that are categories though they hold numbers, with commas between; * is all.",
     .maximum = 4095},
    {"skip", JOB_FIELD_SCRIPT, offsetof(struct job_read, skip),
     .help = "Columns to leave out, with commas between.", .maximum = 4095},
    {"hash_bits", JOB_FIELD_U64, offsetof(struct job_read, hash_bits),
     .help = "Of hashed categories and words: 2 to this many places; by default 16.", .minimum = 4,
     .maximum = 22},
    {"unit", JOB_FIELD_WORD, offsetof(struct job_read, unit),
     .help = "What a text is cut into; by default characters with predict next, else words.",
     .choices = units},
    {"words", JOB_FIELD_WORD, offsetof(struct job_read, words),
     .help = "Of texts: the most frequent are told apart, or all by a hash.", .choices = word_ways},
    {"vocabulary", JOB_FIELD_U64, offsetof(struct job_read, vocabulary),
     .help = "Of frequent words: so many at most; by default 20000.", .minimum = 3,
     .maximum = 1 << 20},
    {"length", JOB_FIELD_U64, offsetof(struct job_read, length),
     .help = "Words or characters of one record; by default 64.", .minimum = 2, .maximum = 4096},
    {"window", JOB_FIELD_U64, offsetof(struct job_read, window),
     .help = "Of a table in order of time: so many rows make one record to forecast from.",
     .minimum = 2, .maximum = 4096},
    {"ahead", JOB_FIELD_U64, offsetof(struct job_read, ahead),
     .help = "Of windows: how many rows after the last the label is told; by default 1.",
     .minimum = 1, .maximum = 1000000},
    {"image_height", JOB_FIELD_U64, offsetof(struct job_read, image_height),
     .help = "Bring all images to this height.", .minimum = 1, .maximum = 1024},
    {"image_width", JOB_FIELD_U64, offsetof(struct job_read, image_width),
     .help = "Bring all images to this width.", .minimum = 1, .maximum = 1024},
    {"label_skew", JOB_FIELD_DOUBLE, offsetof(struct job_read, label_skew),
     .help =
         "Share of the records that lie sorted by label, so that shards differ; for experiments.",
     .minimum = 0, .maximum = 1},
};
const struct job_table job_read_table = JOB_TABLE(read_fields, struct job_read);

static const struct job_field augment_fields[] = {
    {"crop", JOB_FIELD_U64, offsetof(struct job_augment, crop),
     .help = "Each image is padded by so many black pixels, and cut to its size at random.",
     .minimum = 1, .maximum = 1024},
    {"flip", JOB_FIELD_BOOL, offsetof(struct job_augment, flip),
     .help = "Half of the images are mirrored, left to right."},
};
const struct job_table job_augment_table = JOB_TABLE(augment_fields, struct job_augment);

const char *const job_predict_names[] = {"class", "number", "next", NULL};

bool job_train_is_file(const struct job_train *train)
{
    return job_data_is_path(train->data);
}

struct text job_train_peer(const struct job_train *train)
{
    const struct text scheme = TEXT("peer://");
    if (!text_starts_with(train->data, scheme))
        return (struct text){0};
    return (struct text){train->data.data + scheme.size, train->data.size - scheme.size};
}

void job_train_import(struct arena *arena, const struct job_train *train,
                      struct import_options *out)
{
    const struct job_read *read = &train->read;
    struct error ignored;
    import_options_default(out);
    out->format = read->format.size ? arena_copy_string(arena, read->format) : NULL;
    out->target = train->label.size ? arena_copy_string(arena, train->label) : NULL;
    out->category_columns =
        read->category_columns.size ? arena_copy_string(arena, read->category_columns) : NULL;
    out->skip_columns = read->skip.size ? arena_copy_string(arena, read->skip) : NULL;
    out->image_height = (uint32_t)read->image_height;
    out->image_width = (uint32_t)read->image_width;
    out->is_number = text_is(train->predict, "number");
    if (text_is(read->categories, "one-hot"))
        out->categories = IMPORT_CATEGORIES_ONE_HOT;
    if (text_is(read->categories, "hashed"))
        out->categories = IMPORT_CATEGORIES_HASHED;
    if (read->hash_bits)
        out->buckets = 1U << read->hash_bits;
    if (text_is(read->unit, "characters") || (!read->unit.size && text_is(train->predict, "next")))
        out->unit = IMPORT_CHARACTERS;
    out->are_words_hashed = text_is(read->words, "hashed");
    if (read->vocabulary)
        out->vocabulary = (uint32_t)read->vocabulary;
    if (read->length)
        out->length = (uint32_t)read->length;
    out->window = (uint32_t)read->window;
    if (read->ahead)
        out->ahead = (uint32_t)read->ahead;
    if (text_is(read->missing, "drop"))
        out->missing = IMPORT_MISSING_DROP;
    else if (text_is(read->missing, "mean"))
        out->missing = IMPORT_MISSING_MEAN;
    else if (text_parse_double(read->missing, &out->missing_value, &ignored) == 0)
        out->missing = IMPORT_MISSING_CONSTANT;
}

enum dataset_target job_train_told(const struct job_train *train)
{
    return text_is(train->predict, "number") ? DATASET_VALUES
           : text_is(train->predict, "next") ? DATASET_STEPS
                                             : DATASET_CLASS;
}

struct augment job_train_augment(const struct job_train *train)
{
    return (struct augment){(uint32_t)train->augment.crop, train->augment.flip};
}

bool job_train_shape(const struct job_train *train, struct dataset_shape *out_shape)
{
    const struct dataset_entry *entry;
    struct error ignored;
    if (!job_train_is_file(train)) {
        if (dataset_entry_find(train->data, &entry, &ignored) < 0)
            return false;
        *out_shape = (struct dataset_shape){.channels = entry->channels,
                                            .height = entry->height,
                                            .width = entry->width,
                                            .classes = entry->classes};
        return true;
    }
    const enum dataset_target target = job_train_told(train);
    *out_shape = (struct dataset_shape){
        .channels = train->channels ? (uint32_t)train->channels : 1,
        .height = train->height ? (uint32_t)train->height : 1,
        .width = (uint32_t)train->features,
        .vocabulary = (uint32_t)train->vocabulary,
        .target = target,
        .classes = target == DATASET_CLASS   ? (uint32_t)train->classes
                   : target == DATASET_STEPS ? (uint32_t)train->vocabulary
                                             : 0,
        .values = target == DATASET_VALUES,
        .steps = target == DATASET_STEPS ? (uint32_t)train->features : 0,
    };
    return train->features && (target == DATASET_VALUES || out_shape->classes);
}

void job_train_set_shape(struct job_train *train, const struct dataset_shape *shape)
{
    const bool is_image = shape->channels > 1 || shape->height > 1;
    train->channels = is_image ? shape->channels : 0;
    train->height = is_image ? shape->height : 0;
    train->features = shape->width;
    train->vocabulary = shape->vocabulary;
    train->classes = shape->target == DATASET_CLASS ? shape->classes : 0;
}

static int check_read(const struct job_node *root, const char *file_name,
                      const struct job_train *train, struct error *error)
{
    const struct job_read *read = &train->read;
    double ignored;
    struct error other;
    if (read->missing.size && !text_is(read->missing, "refuse") &&
        !text_is(read->missing, "drop") && !text_is(read->missing, "mean") &&
        text_parse_double(read->missing, &ignored, &other) < 0)
        return job_table_refuse(root, file_name, "train.read.missing",
                                "must be refuse, drop, mean or a number", error);
    if (!read->image_height != !read->image_width)
        return job_table_refuse(root, file_name, "train.read",
                                "image_height and image_width go together", error);
    if (read->ahead && !read->window)
        return job_table_refuse(root, file_name, "train.read.ahead", "needs a window", error);
    return 0;
}

static bool is_label(struct text label)
{
    for (size_t i = 0; i < label.size; i++)
        if (!isalnum((unsigned char)label.data[i]) && !strchr("._+-", label.data[i]))
            return false;
    return label.size > 0 && label.size <= JOB_PEER_LABEL_SIZE_MAX;
}

/* Data that lie at lenders are known by what the borrower has of the same kind. */
static int check_peer(const struct job_node *root, const char *file_name,
                      const struct job_train *train, struct error *error)
{
    const bool is_peer = text_starts_with(train->data, TEXT("peer://"));
    if (!is_peer && train->test.size)
        return job_table_refuse(root, file_name, "train.test",
                                "goes with data that lie at lenders: peer://LABEL", error);
    if (!is_peer)
        return 0;
    if (!is_label(job_train_peer(train)))
        return job_table_refuse(root, file_name, "train.data",
                                "peer:// needs a label of letters, digits and . _ + -, 35 at most",
                                error);
    if (!train->test.size)
        return job_table_refuse(root, file_name, "train.test",
                                "is missing: a file of your own like the lenders' data says what "
                                "they look like, and tests the model",
                                error);
    if (train->read.label_skew > 0 || text_is(train->shards, "speed"))
        return job_table_refuse(root, file_name, "train.data",
                                "each lender's data are its shard: shards and label_skew are not "
                                "for peer://",
                                error);
    return 0;
}

/* What is filled in of a file of the borrower's, where it was read. */
static int check_filled(const struct job_node *root, const char *file_name,
                        const struct job_train *train, struct error *error)
{
    const enum dataset_target target = job_train_told(train);
    const char *missing = !train->features                                ? "train.features"
                          : target == DATASET_CLASS && !train->classes    ? "train.classes"
                          : target == DATASET_STEPS && !train->vocabulary ? "train.vocabulary"
                                                                          : NULL;
    if (missing)
        return job_table_refuse(root, file_name, missing, "is missing", error);
    return 0;
}

static int check_augment(const struct job_node *root, const char *file_name,
                         const struct job_train *train, struct error *error)
{
    struct dataset_shape shape;
    struct error reason;
    const struct augment augment = job_train_augment(train);
    if (!job_train_shape(train, &shape) || augment_check(&augment, &shape, &reason) == 0)
        return 0;
    return job_table_refuse(root, file_name, "train.augment", reason.message, error);
}

/* What the model's size rules out, where it is known: said before anything is sent or held. */
static int check_size(const struct job_node *root, const char *file_name,
                      const struct job_spec *spec, struct error *error)
{
    struct dataset_shape shape;
    struct model_spec model;
    struct error reason;
    int layer;
    if (!job_train_shape(&spec->train, &shape) ||
        job_train_model(&spec->train, &shape, &model, &layer, &reason) < 0)
        return 0;
    if (job_sync_check_servers(&spec->sync, &model, &reason) < 0)
        return job_table_refuse(root, file_name, "sync.servers", reason.message, error);
    if (job_train_check_memory(&spec->train, &model, spec->resources.memory_bytes.value, &reason) ==
        0)
        return 0;
    return job_table_refuse(root, file_name, "resources.memory", reason.message, error);
}

int job_data_check(const struct job_node *root, const char *file_name, const struct job_spec *spec,
                   struct error *error)
{
    const struct job_train *train = &spec->train;
    const bool is_file = job_train_is_file(train);
    if (text_equal(train->model, TEXT("lenet5")) &&
        (text_ends_with(train->data, TEXT(".csv")) || text_ends_with(train->data, TEXT(".csv.gz"))))
        return job_table_refuse(root, file_name, "train.model",
                                "lenet5 takes images; use logistic or mlp for a CSV file", error);
    if (check_read(root, file_name, train, error) < 0 ||
        check_peer(root, file_name, train, error) < 0)
        return -1;
    if (!is_file && (train->label.size || train->features || train->classes))
        return job_table_refuse(root, file_name,
                                train->label.size ? "train.label"
                                : train->features ? "train.features"
                                                  : "train.classes",
                                "is for a file of your own only; leave it out", error);
    if (check_augment(root, file_name, train, error) < 0 ||
        check_size(root, file_name, spec, error) < 0)
        return -1;
    return is_file && spec->input_count ? check_filled(root, file_name, train, error) : 0;
}
