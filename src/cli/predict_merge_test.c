#include "base/buffer.h"
#include "base/file.h"
#include "cli/predict_merge.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <unistd.h>

enum { PARTS_MAX = 4 };

static int write_to(void *context, struct text lines, struct error *error)
{
    buffer_append_text(context, lines);
    return buffer_check(context, error);
}

static void write_part(const char *path, const char *lines)
{
    struct error error;
    const struct text part = text_of(lines);
    ASSERT_OK(file_replace(path, &part, 1, 0600, &error));
}

static int merge(const char *const *parts, size_t count, bool is_json, struct buffer *out,
                 uint64_t *out_records, struct error *error)
{
    char folder[] = "/tmp/souk-merge-test-XXXXXX";
    char paths[PARTS_MAX][64];
    const char *named[PARTS_MAX];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%zu", folder, i);
        named[i] = paths[i];
        write_part(paths[i], parts[i]);
    }
    buffer_clear(out);
    const struct predict_merge_options options = {
        .paths = named, .count = count, .is_json = is_json, .write = write_to, .context = out};
    const int result = predict_merge(&options, out_records, error);
    for (size_t i = 0; i < count; i++)
        unlink(paths[i]);
    rmdir(folder);
    return result;
}

static void parts_are_told_in_the_order_of_their_records(void **state)
{
    (void)state;
    struct error error;
    struct buffer out AUTO_BUFFER;
    uint64_t records = 0;
    buffer_init(&out, 1 << 16);
    const char *const rows[] = {"index,prediction\r\n0,a\r\n3,\"d\r\n,\"\"e\"\r\n",
                                "index,prediction\r\n1,b\r\n", "index,prediction\r\n2,c\r\n"};
    ASSERT_OK(merge(rows, 3, false, &out, &records, &error));
    assert_string_equal(buffer_string(&out),
                        "index,prediction\r\n0,a\r\n1,b\r\n2,c\r\n3,\"d\r\n,\"\"e\"\r\n");
    assert_int_equal(records, 4);
    const char *const objects[] = {"{\"index\":0,\"prediction\":1}\n",
                                   "{\"index\":1,\"prediction\":\"\\\"\"}\n"};
    ASSERT_OK(merge(objects, 2, true, &out, &records, &error));
    assert_string_equal(buffer_string(&out),
                        "{\"index\":0,\"prediction\":1}\n{\"index\":1,\"prediction\":\"\\\"\"}\n");
    const char *const none[] = {"index\r\n", "index\r\n"};
    ASSERT_OK(merge(none, 2, false, &out, &records, &error));
    assert_int_equal(records, 0);
}

static void parts_that_do_not_fit_together_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"i,p\r\n0,a\r\n2,b\r\n", "i,p\r\n"},          /* a record is missing */
        {"i,p\r\n0,a\r\n", "i,p\r\n1,b\r\n3,c\r\n"},   /* another one */
        {"i,p\r\n0,a\r\n", "i,p\r\n7,b\r\n"},          /* one of somewhere else */
        {"i,p\r\n0,a\r\n", "i,q\r\n1,b\r\n"},          /* another heading */
        {"i,p\r\n0,a\r\n", ""},                        /* none */
        {"i,p\r\n0,a\r\n", "i,p\r\n1,b"},              /* broken off */
        {"i,p\r\n0,\"a\r\n2,b\r\n", "i,p\r\n1,b\r\n"}, /* in a quote */
        {"i,p\r\n00,a\r\n", "i,p\r\n1,b\r\n"},
        {"i,p\r\n0,a\r\n", "i,p\r\n1,\x1b[2Jb\r\n"}, /* it would speak to the terminal */
        {"i,p\r\n0,a\r\n", "i,p\r\n1,\x7f\r\n"},
    };
    struct error error;
    struct buffer out AUTO_BUFFER;
    uint64_t records = 0;
    buffer_init(&out, 1 << 16);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(merge(wrong[i], 2, false, &out, &records, &error), ERROR_CORRUPT);
}

static void a_record_has_a_largest_size(void **state)
{
    (void)state;
    enum { SIZE_MAX_OF_RECORD = 1 << 20 };
    struct error error;
    struct buffer out AUTO_BUFFER, line AUTO_BUFFER;
    uint64_t records = 0;
    buffer_init(&out, 4 << 20);
    buffer_init(&line, 4 << 20);
    buffer_append_string(&line, "{\"index\":0,\"p\":\"");
    while (line.size < SIZE_MAX_OF_RECORD - 3)
        buffer_append_byte(&line, 'a');
    buffer_append_string(&line, "\"}\n");
    const char *const longest[] = {buffer_string(&line)};
    assert_int_equal(line.size, SIZE_MAX_OF_RECORD);
    ASSERT_OK(merge(longest, 1, true, &out, &records, &error));
    assert_int_equal(out.size, SIZE_MAX_OF_RECORD);
    line.data[line.size - 1] = ' ';
    buffer_append_byte(&line, '\n');
    const char *const longer[] = {buffer_string(&line)};
    ASSERT_FAILS(merge(longer, 1, true, &out, &records, &error), ERROR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_in_the_order_of_their_records),
        cmocka_unit_test(parts_that_do_not_fit_together_are_refused),
        cmocka_unit_test(a_record_has_a_largest_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
