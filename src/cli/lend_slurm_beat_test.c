#include "base/file.h"
#include "cli/lend_slurm_beat.h"
#include "testing/testing.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

static void read_beat(const char *path, char out[64])
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 63);
    struct error error = {0};
    memset(out, 0, 64);
    ASSERT_OK(file_read(path, &buffer, &error));
    memcpy(out, buffer.data, buffer.size);
}

TEST(the_file_changes_while_it_beats)
{
    char folder[] = "/tmp/souk-beat.XXXXXX", path[64], first[64], second[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/beat", folder);
    AUTO(lend_slurm_beat) struct lend_slurm_beat *beat = NULL;
    struct error error = {0};
    ASSERT_OK(lend_slurm_beat_open(path, &beat, &error));
    AUTO_FD int changes = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(changes, path, IN_CLOSE_WRITE) >= 0);
    read_beat(path, first);
    struct pollfd polled = {.fd = changes, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, HUNG_MS), 1);
    read_beat(path, second);
    assert_string_not_equal(first, second);
    unlink(path);
    rmdir(folder);
}

TEST(a_folder_that_is_not_there_is_said)
{
    struct lend_slurm_beat *beat = NULL;
    struct error error = {0};
    ASSERT_FAILS(lend_slurm_beat_open("/nonexistent/beat", &beat, &error), ERROR_NOT_FOUND);
    assert_null(beat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_changes_while_it_beats),
        cmocka_unit_test(a_folder_that_is_not_there_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
