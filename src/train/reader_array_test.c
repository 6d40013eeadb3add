/* covers npy_array.c, zip_file.c, reader_cifar.c, reader_cifar_strips.c */
/* covers reader_idx.c, reader_images.c, reader_npy.c */
#include "base/buffer.h"
#include "train/npy_array.h"
#include "train/reader_testing.h"

#include <png.h>
#include <zlib.h>

enum { COUNT = 12 };

/* ---- Making files ---- */

static void append_npy(struct buffer *out, const char *type, const char *shape, const void *data,
                       size_t size)
{
    char header[128];
    const int used =
        snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 type, shape);
    memset(header + used, ' ', sizeof(header) - (size_t)used);
    header[117] = '\n';
    buffer_append(out, "\x93NUMPY\x01\x00\x76\x00", 10);
    buffer_append(out, header, 118);
    buffer_append(out, data, size);
}

static void append_number(struct buffer *out, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        buffer_append_byte(out, (uint8_t)(value >> (8 * i)));
}

struct member {
    const char *name;
    struct buffer *bytes;
    bool is_deflated;
    uint8_t packed[1 << 16];
    size_t packed_size, offset;
};

static void pack(struct member *member)
{
    z_stream stream = {0};
    if (!member->is_deflated) {
        memcpy(member->packed, member->bytes->data, member->bytes->size);
        member->packed_size = member->bytes->size;
        return;
    }
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = member->bytes->data;
    stream.avail_in = (uInt)member->bytes->size;
    stream.next_out = member->packed;
    stream.avail_out = sizeof(member->packed);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    member->packed_size = stream.total_out;
    deflateEnd(&stream);
}

static void append_head(struct buffer *out, const struct member *member, bool is_local)
{
    buffer_append(out, is_local ? "PK\3\4" : "PK\1\2\x14\0", is_local ? 4 : 6);
    append_number(out, 20, 2);
    append_number(out, 0, 2);
    append_number(out, member->is_deflated ? 8 : 0, 2);
    append_number(out, 0, 4);
    append_number(out, crc32(0, member->bytes->data, (uInt)member->bytes->size), 4);
    append_number(out, member->packed_size, 4);
    append_number(out, member->bytes->size, 4);
    append_number(out, strlen(member->name), 2);
    append_number(out, 0, 2);
    if (!is_local) {
        append_number(out, 0, 8);
        append_number(out, 0, 2);
        append_number(out, member->offset, 4);
    }
    buffer_append_string(out, member->name);
}

static void make_zip(struct member *members, size_t count, struct buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        pack(&members[i]);
        members[i].offset = out->size;
        append_head(out, &members[i], true);
        buffer_append(out, members[i].packed, members[i].packed_size);
    }
    const size_t directory = out->size;
    for (size_t i = 0; i < count; i++)
        append_head(out, &members[i], false);
    const size_t size = out->size - directory;
    buffer_append(out, "PK\5\6\0\0\0\0", 8);
    append_number(out, count, 2);
    append_number(out, count, 2);
    append_number(out, size, 4);
    append_number(out, directory, 4);
    append_number(out, 0, 2);
}

/* ---- NumPy ---- */

static void make_npz(struct buffer *out, int64_t last_label)
{
    struct buffer x AUTO_BUFFER, y AUTO_BUFFER;
    uint8_t pixels[COUNT * 2 * 3];
    int64_t labels[COUNT];
    buffer_init(&x, 1 << 16);
    buffer_init(&y, 1 << 16);
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)i;
    for (int i = 0; i < COUNT; i++)
        labels[i] = i % 3;
    labels[COUNT - 1] = last_label;
    append_npy(&x, "|u1", "(12, 2, 3)", pixels, sizeof(pixels));
    append_npy(&y, "<i8", "(12,)", labels, sizeof(labels));
    struct member *members = calloc(2, sizeof(*members));
    assert_non_null(members);
    members[0].name = "x_train.npy";
    members[0].bytes = &x;
    members[0].is_deflated = true;
    members[1].name = "y_train.npy";
    members[1].bytes = &y;
    make_zip(members, 2, out);
    free(members);
}

TEST(arrays_are_read_out_of_a_zip_file)
{
    struct error error;
    struct scratch scratch;
    struct buffer zip AUTO_BUFFER;
    buffer_init(&zip, 1 << 20);
    scratch_init(&scratch);
    make_npz(&zip, 2);
    const struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(import_read(scratch_write(&scratch, "a.npz", buffer_text(&zip)), &options, &import,
                          &error));
    assert_int_equal(import.form, IMPORT_BYTES);
    assert_int_equal(import.train.count, COUNT);
    assert_int_equal(import.height, 2);
    assert_int_equal(import.width, 3);
    assert_int_equal(import.classes, 3);
    assert_int_equal(import.train.values.data[71], 71);
    assert_int_equal(classes_of(&import.train)[4], 1);
    scratch_done(&scratch);
}

TEST(a_bad_label_or_a_cut_zip_file_is_refused_with_its_place)
{
    struct error error;
    struct buffer zip AUTO_BUFFER;
    buffer_init(&zip, 1 << 20);
    make_npz(&zip, -7);
    const struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    ASSERT_FAILS(reader_npz_read(buffer_text(&zip), &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "label -7 of record 11 is below 0 (byte 216)");
    import_done(&import);
    const struct text cut = {(char *)zip.data, zip.size - 30};
    ASSERT_FAILS(reader_npz_read(cut, &options, &import, &error), ERROR_CORRUPT);
    char place[64];
    snprintf(place, sizeof(place), "zip: truncated at byte %zu: there is no end", cut.size);
    assert_says(&error, place);
    struct import_options few = default_options();
    few.size_max = 100;
    ASSERT_FAILS(reader_npz_read(buffer_text(&zip), &few, &import, &error), ERROR_EXHAUSTED);
}

static void assert_npy_refused(const char *type, const char *shape, const char *word)
{
    struct error error;
    struct npy_header header;
    struct buffer npy AUTO_BUFFER;
    AUTO(data_stream) struct data_stream *stream = NULL;
    buffer_init(&npy, 4096);
    append_npy(&npy, type, shape, "", 0);
    ASSERT_OK(data_stream_open_bytes(buffer_text(&npy), 4096, &stream, &error));
    assert_int_equal(npy_header_read(stream, 1 << 20, &header, &error), -1);
    assert_says(&error, word);
}

TEST(headers_that_promise_too_much_are_refused)
{
    assert_npy_refused("|O", "(3,)", "type '|O' are not read");
    assert_npy_refused("<f2", "(3,)", "are not read");
    assert_npy_refused("<f4", "(1000000000000,)", "more than the 1048576 bytes allowed");
    assert_npy_refused("<f4", "(4294967296, 4294967296)", "dimension 2");
    assert_npy_refused("<f4", "(3, 0)", "dimension 2");
    assert_npy_refused("<f4", "(1, 1, 1, 1, 1)", "more than 4 dimensions");
    assert_npy_refused("<f4", "()", "one number");
}

TEST(numbers_of_every_kind_come_as_floats)
{
    struct error error;
    struct npy_header header;
    struct buffer npy AUTO_BUFFER;
    AUTO(data_stream) struct data_stream *stream = NULL;
    static const uint8_t bytes[] = {0xff, 0xfe, 0x00, 0x05};
    float values[2];
    buffer_init(&npy, 4096);
    append_npy(&npy, ">i2", "(2,)", bytes, sizeof(bytes));
    ASSERT_OK(data_stream_open_bytes(buffer_text(&npy), 4096, &stream, &error));
    ASSERT_OK(npy_header_read(stream, 1 << 20, &header, &error));
    ASSERT_OK(npy_floats_read(stream, &header, values, 2, &error));
    assert_float_equal(values[0], -2, 0);
    assert_float_equal(values[1], 5, 0);
    ASSERT_FAILS(npy_floats_read(stream, &header, values, 1, &error), ERROR_CORRUPT);
    assert_says(&error, "truncated at byte 132");
}

/* ---- Images ---- */

TEST(cifar_records_are_read_and_a_bad_label_named)
{
    struct error error;
    struct import_rows rows = {0};
    static uint8_t records[2 * 3073];
    records[0] = 7;
    records[1] = 99;
    records[3073] = 3;
    struct reader_source source = {.bytes = {(char *)records, sizeof(records)}};
    ASSERT_OK(reader_cifar_read(&source, 1, 1 << 20, &rows, &error));
    assert_int_equal(rows.count, 2);
    assert_int_equal(classes_of(&rows)[0], 7);
    assert_int_equal(rows.values.data[0], 99);
    source.bytes.size -= 5;
    ASSERT_FAILS(reader_cifar_read(&source, 1, 1 << 20, &rows, &error), ERROR_CORRUPT);
    assert_says(&error, "at byte 3073 has 3068 of 3073 bytes");
    records[3073] = 10;
    ASSERT_FAILS(reader_cifar_read(&source, 1, 1 << 20, &rows, &error), ERROR_CORRUPT);
    source.bytes.size += 5;
    ASSERT_FAILS(reader_cifar_read(&source, 1, 1 << 20, &rows, &error), ERROR_INVALID);
    assert_says(&error, "(byte 3073)");
    spool_done(&rows.values);
    spool_done(&rows.targets);
}

static void write_png(struct scratch *scratch, const char *name, uint32_t width, uint32_t height,
                      const uint8_t *pixels)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height};
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t size = 0;
    assert_true(png_image_write_to_memory(&image, NULL, &size, 0, pixels, 0, NULL));
    uint8_t *bytes = malloc(size);
    assert_true(png_image_write_to_memory(&image, bytes, &size, 0, pixels, 0, NULL));
    scratch_write(scratch, name, (struct text){(char *)bytes, size});
    free(bytes);
}

TEST(strips_become_images_with_a_plane_for_each_colour)
{
    struct error error;
    struct scratch scratch;
    scratch_init(&scratch);
    uint8_t *pixels = calloc(10, 3072);
    assert_non_null(pixels);
    pixels[3072 + 3] = 5;     /* row 1, pixel 1, red */
    pixels[3072 + 3 + 2] = 9; /* blue */
    write_png(&scratch, "data_batch_1.png", 1024, 10, pixels);
    scratch_write(&scratch, "train_lables.json", TEXT("[0,1,2,3,4,5,6,7,8,9]"));
    const struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(import_read(scratch.folder, &options, &import, &error));
    assert_int_equal(import.train.count, 10);
    assert_int_equal(import.channels, 3);
    assert_int_equal(import.train.values.data[3072 + 1], 5);
    assert_int_equal(import.train.values.data[3072 + 2048 + 1], 9);
    import_done(&import);
    scratch_write(&scratch, "train_lables.json", TEXT("[0,1,2,3,4,5,6,7,8,10]"));
    ASSERT_FAILS(import_read(scratch.folder, &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "label 9, \"10\", is no number below 10 (byte 19)");
    scratch_write(&scratch, "train_lables.json", TEXT("[0]"));
    ASSERT_FAILS(import_read(scratch.folder, &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "10 images but 1 labels");
    free(pixels);
    scratch_done(&scratch);
}

TEST(a_folder_of_images_gives_its_classes)
{
    struct error error;
    struct scratch scratch;
    uint8_t pixels[3 * 4 * 4];
    memset(pixels, 100, sizeof(pixels));
    scratch_init(&scratch);
    scratch_folder(&scratch, "cat");
    scratch_folder(&scratch, "dog");
    for (int i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s/%d.png", i % 2 ? "dog" : "cat", i);
        write_png(&scratch, name, 4, i == 9 ? 3 : 4, pixels);
    }
    struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    ASSERT_FAILS(import_read(scratch.folder, &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "train.read.image_height");
    options.image_height = options.image_width = 2;
    ASSERT_OK(import_read(scratch.folder, &options, &import, &error));
    assert_int_equal(import.train.count, 10);
    assert_int_equal(import.width, 2);
    assert_int_equal(import.train.values.data[119], 100);
    assert_int_equal(classes_of(&import.train)[9], 1);
    scratch_done(&scratch);
}

TEST(idx_files_are_found_by_their_names)
{
    struct error error;
    struct scratch scratch;
    struct buffer images AUTO_BUFFER, labels AUTO_BUFFER;
    scratch_init(&scratch);
    buffer_init(&images, 4096);
    buffer_init(&labels, 4096);
    buffer_append(&images, "\0\0\x08\x03\0\0\0\x0a\0\0\0\x01\0\0\0\x02", 16);
    buffer_append(&labels, "\0\0\x08\x01\0\0\0\x0a", 8);
    for (uint8_t i = 0; i < 10; i++) {
        buffer_append(&images, (uint8_t[]){i, 0}, 2);
        buffer_append_byte(&labels, i % 2);
    }
    scratch_write(&scratch, "train-labels-idx1-ubyte", buffer_text(&labels));
    scratch_write(&scratch, "train-images-idx3-ubyte", buffer_text(&images));
    struct import_options options = default_options();
    struct import import AUTO_IMPORT = {0};
    ASSERT_OK(import_read(scratch.folder, &options, &import, &error));
    assert_int_equal(import.train.count, 10);
    import_done(&import);
    ASSERT_OK(import_read(scratch.path, &options, &import, &error));
    assert_int_equal(import.width, 2);
    assert_int_equal(import.train.values.data[18], 9);
    assert_int_equal(import.classes, 2);
    import_done(&import);
    options.classes = 1;
    ASSERT_FAILS(import_read(scratch.path, &options, &import, &error), ERROR_INVALID);
    assert_says(&error, "label 1 of record 1 is not below 1 (byte 9)");
    scratch_done(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_read_out_of_a_zip_file),
        cmocka_unit_test(a_bad_label_or_a_cut_zip_file_is_refused_with_its_place),
        cmocka_unit_test(headers_that_promise_too_much_are_refused),
        cmocka_unit_test(numbers_of_every_kind_come_as_floats),
        cmocka_unit_test(cifar_records_are_read_and_a_bad_label_named),
        cmocka_unit_test(strips_become_images_with_a_plane_for_each_colour),
        cmocka_unit_test(a_folder_of_images_gives_its_classes),
        cmocka_unit_test(idx_files_are_found_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
