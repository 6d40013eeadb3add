#include "testing/testing.h"
#include "train/image_file.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <zlib.h>

static const uint8_t colours[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};

static void assert_says(const struct error *error, const char *word)
{
    if (!strstr(error->message, word))
        fail_msg("\"%s\" does not say \"%s\"", error->message, word);
}

static struct text make_png(uint8_t *out, size_t room)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = 2, .height = 2};
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t size = room;
    assert_true(png_image_write_to_memory(&image, out, &size, 0, colours, 0, NULL));
    return (struct text){(char *)out, size};
}

TEST(a_png_gives_its_pixels_back)
{
    struct error error;
    uint8_t bytes[4096];
    struct text png = make_png(bytes, sizeof(bytes));
    struct image image;
    ASSERT_OK(image_decode(png, 0, &image, &error));
    assert_int_equal(image.channels, 3);
    assert_int_equal(image.height, 2);
    assert_memory_equal(image.pixels, colours, sizeof(colours));
    uint8_t planes[12], one[3];
    image_scale(&image, 2, 2, planes);
    static const uint8_t red_plane[] = {255, 0, 0, 10};
    assert_memory_equal(planes, red_plane, 4);
    image_scale(&image, 1, 1, one);
    assert_int_equal(one[0], 66); /* the mean of 255, 0, 0 and 10, rounded */
    image_done(&image);
    ASSERT_OK(image_decode(png, 1, &image, &error));
    assert_int_equal(image.channels, 1);
    image_done(&image);
}

TEST(what_is_damaged_or_too_large_is_refused)
{
    struct error error;
    uint8_t bytes[4096];
    const struct text png = make_png(bytes, sizeof(bytes));
    struct image image;
    /* Behind the signature: the head of 25 bytes, then others. */
    const struct text cut = {png.data, 40}, headless = {png.data, 10};
    ASSERT_FAILS(image_decode(cut, 0, &image, &error), ERROR_CORRUPT);
    assert_says(&error, "the PNG is truncated at byte 40, in the piece at byte 33");
    ASSERT_FAILS(image_decode(headless, 0, &image, &error), ERROR_CORRUPT);
    assert_says(&error, "the PNG is truncated at byte 10, in the piece at byte 8");
    bytes[24] ^= 0x55; /* the depth of its pixels, and so the sum */
    ASSERT_FAILS(image_decode(png, 0, &image, &error), ERROR_CORRUPT);
    assert_says(&error, "the PNG is damaged");
    bytes[24] ^= 0x55;
    ASSERT_FAILS(image_decode(TEXT("GIF89a"), 0, &image, &error), ERROR_INVALID);
    assert_says(&error, "neither PNG nor JPEG");
    /* A width of 2^20 with the checksum that belongs to it. */
    memcpy(bytes + 16, "\x00\x10\x00\x00", 4);
    const uint32_t sum = (uint32_t)crc32(0, bytes + 12, 17);
    for (int i = 0; i < 4; i++)
        bytes[29 + i] = (uint8_t)(sum >> (24 - 8 * i));
    assert_int_equal(image_decode(png, 0, &image, &error), -1);
}

TEST(a_jpeg_gives_its_pixels_nearly_back)
{
    struct error error;
    uint8_t grey[16 * 8];
    for (size_t i = 0; i < sizeof(grey); i++)
        grey[i] = (uint8_t)(i / 16 * 20);
    tjhandle handle = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    assert_int_equal(
        tjCompress2(handle, grey, 16, 0, 8, TJPF_GRAY, &bytes, &size, TJSAMP_GRAY, 95, 0), 0);
    struct image image;
    ASSERT_OK(image_decode((struct text){(char *)bytes, size}, 0, &image, &error));
    assert_int_equal(image.channels, 1);
    assert_int_equal(image.width, 16);
    assert_int_equal(image.height, 8);
    for (size_t i = 0; i < sizeof(grey); i++)
        assert_in_range(image.pixels[i] + 8, grey[i], grey[i] + 16);
    image_done(&image);
    ASSERT_FAILS(image_decode((struct text){(char *)bytes, size / 2}, 0, &image, &error),
                 ERROR_CORRUPT);
    tjFree(bytes);
    tjDestroy(handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_png_gives_its_pixels_back),
        cmocka_unit_test(what_is_damaged_or_too_large_is_refused),
        cmocka_unit_test(a_jpeg_gives_its_pixels_nearly_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
