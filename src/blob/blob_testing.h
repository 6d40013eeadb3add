/* What the tests of this folder share: a store in a temporary folder. */
#pragma once

#include "blob/blob_store.h"
#include "testing/testing.h"

#include <dirent.h>

struct place {
    char folder[64];
    struct virtual_clock clock;
    struct blob_store_options options;
    struct blob_store *store;
};

static inline void place_open(struct place *place)
{
    struct error error;
    ASSERT_OK(blob_store_open(&place->options, &place->store, &error));
}

static inline void place_close(struct place *place)
{
    blob_store_free(place->store);
    place->store = NULL;
}

static inline int place_set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    snprintf(place->folder, sizeof(place->folder), "/tmp/souk-blob-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    virtual_clock_init(&place->clock, 1000000000);
    place->options =
        (struct blob_store_options){.folder = place->folder, .clock = &place->clock.clock};
    place_open(place);
    *state = place;
    return 0;
}

static inline void place_remove_folder(const char *folder)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, NULL, NULL);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        char path[512];
        const int length = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        assert_true(length > 0 && (size_t)length < sizeof(path));
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0 &&
            unlink(path) < 0)
            place_remove_folder(path);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(rmdir(folder), 0);
}

static inline int place_tear_down(void **state)
{
    struct place *place = *state;
    place_close(place);
    place_remove_folder(place->folder);
    free(place);
    return 0;
}

#define PLACE_TEST(name) cmocka_unit_test_setup_teardown(name, place_set_up, place_tear_down)
