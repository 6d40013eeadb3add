#include "peer/host.h"
#include "peer/identity.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A machine as its files are below `root`. */
struct parts {
    const char *installation, *board, *card;
};

static const struct parts first = {"1111", "aaaa", "02:00:00:00:00:01"};

struct fixture {
    char root[64], state_dir[96];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    snprintf(fixture->root, sizeof(fixture->root), "/tmp/souk-host-test-XXXXXX");
    *state = fixture;
    if (!mkdtemp(fixture->root))
        return -1;
    snprintf(fixture->state_dir, sizeof(fixture->state_dir), "%s/state", fixture->root);
    return mkdir(fixture->state_dir, 0700);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct error error;
    const int result = folder_remove(fixture->root, &error);
    free(fixture);
    return result;
}

/* NULL takes the file away. */
static void put(const struct fixture *fixture, const char *path, const char *content)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s%s", fixture->root, path);
    for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    if (!content) {
        unlink(whole);
        return;
    }
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    fprintf(file, "%s\n", content);
    assert_int_equal(fclose(file), 0);
}

static void become(const struct fixture *fixture, struct parts parts)
{
    put(fixture, "/etc/machine-id", parts.installation);
    put(fixture, "/sys/class/dmi/id/product_uuid", parts.board);
    put(fixture, "/sys/class/net/eth0/addr_assign_type", "0");
    put(fixture, "/sys/class/net/eth0/device/vendor", "x");
    put(fixture, "/sys/class/net/eth0/address", parts.card);
    /* A bridge's address is made up anew at every start. */
    put(fixture, "/sys/class/net/br0/addr_assign_type", "3");
    put(fixture, "/sys/class/net/br0/address", "02:ff:ff:ff:ff:ff");
}

static int start(const struct fixture *fixture, bool is_same, struct error *out_error)
{
    AUTO(identity) struct identity *identity = NULL;
    struct error error = {0};
    ASSERT_OK(identity_open(fixture->state_dir, &identity, &error));
    return identity_bind(identity, fixture->root, is_same, out_error);
}

TEST(same_machine_is_known_again)
{
    struct error error = {0};
    become(*state, first);
    ASSERT_OK(start(*state, false, &error));
    ASSERT_OK(start(*state, false, &error));
}

TEST(copied_disk_is_noticed_by_its_board)
{
    struct error error = {0};
    become(*state, first);
    ASSERT_OK(start(*state, false, &error));
    become(*state, (struct parts){"1111", "bbbb", "02:00:00:00:00:02"});
    ASSERT_FAILS(start(*state, false, &error), ERROR_CONFLICT);
    assert_non_null(strstr(error.message, "another board"));
    assert_non_null(strstr(error.message, "--new-identity"));
    assert_non_null(strstr(error.message, "--same-machine"));
    ASSERT_FAILS(start(*state, false, &error), ERROR_CONFLICT);
}

TEST(copied_disk_is_noticed_by_its_cards_where_the_board_is_not_to_be_read)
{
    struct error error = {0};
    become(*state, (struct parts){"1111", NULL, "02:00:00:00:00:01"});
    ASSERT_OK(start(*state, false, &error));
    become(*state, (struct parts){"1111", NULL, "02:00:00:00:00:02"});
    ASSERT_FAILS(start(*state, false, &error), ERROR_CONFLICT);
    assert_non_null(strstr(error.message, "other network cards"));
}

TEST(folder_taken_to_another_installation_is_noticed)
{
    struct error error = {0};
    become(*state, first);
    ASSERT_OK(start(*state, false, &error));
    become(*state, (struct parts){"2222", "aaaa", "02:00:00:00:00:01"});
    ASSERT_FAILS(start(*state, false, &error), ERROR_CONFLICT);
    assert_non_null(strstr(error.message, "another installation"));
}

TEST(new_card_or_another_user_proves_nothing)
{
    struct error error = {0};
    become(*state, first);
    ASSERT_OK(start(*state, false, &error));
    become(*state, (struct parts){"1111", "aaaa", "02:00:00:00:00:09"});
    ASSERT_OK(start(*state, false, &error));
    /* Run by somebody who may not read the board, after by somebody who may: it still counts. */
    become(*state, (struct parts){"1111", NULL, "02:00:00:00:00:09"});
    ASSERT_OK(start(*state, false, &error));
    become(*state, (struct parts){"1111", "bbbb", "02:00:00:00:00:09"});
    ASSERT_FAILS(start(*state, false, &error), ERROR_CONFLICT);
}

TEST(owner_can_say_that_it_is_the_same_machine)
{
    struct error error = {0};
    become(*state, first);
    ASSERT_OK(start(*state, false, &error));
    become(*state, (struct parts){"1111", "bbbb", "02:00:00:00:00:02"});
    ASSERT_OK(start(*state, true, &error));
    ASSERT_OK(start(*state, false, &error));
}

TEST(forgotten_identity_is_a_new_one)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    uint8_t key[IDENTITY_KEY_SIZE];
    become(fixture, first);
    AUTO(identity) struct identity *before = NULL, *after = NULL;
    ASSERT_OK(identity_open(fixture->state_dir, &before, &error));
    ASSERT_OK(identity_bind(before, fixture->root, false, &error));
    memcpy(key, identity_public_key(before), sizeof(key));
    become(fixture, (struct parts){"2222", "bbbb", "02:00:00:00:00:02"});
    ASSERT_OK(identity_forget(fixture->state_dir, &error));
    ASSERT_OK(identity_open(fixture->state_dir, &after, &error));
    ASSERT_OK(identity_bind(after, fixture->root, false, &error));
    assert_memory_not_equal(key, identity_public_key(after), sizeof(key));
}

TEST(file_keeps_no_mark_in_clear_and_a_broken_one_is_told)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    char path[PATH_MAX], text[4096] = "";
    become(fixture, first);
    ASSERT_OK(start(fixture, false, &error));
    snprintf(path, sizeof(path), "%s/host.json", fixture->state_dir);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    assert_null(strstr(text, "1111"));
    assert_null(strstr(text, "02:00"));
    put(fixture, "/state/host.json", "{\"installation\":7}");
    ASSERT_FAILS(start(fixture, false, &error), ERROR_CORRUPT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(same_machine_is_known_again),
        CASE(copied_disk_is_noticed_by_its_board),
        CASE(copied_disk_is_noticed_by_its_cards_where_the_board_is_not_to_be_read),
        CASE(folder_taken_to_another_installation_is_noticed),
        CASE(new_card_or_another_user_proves_nothing),
        CASE(owner_can_say_that_it_is_the_same_machine),
        CASE(forgotten_identity_is_a_new_one),
        CASE(file_keeps_no_mark_in_clear_and_a_broken_one_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
