#include "cli/function_token.h"

#include "base/buffer.h"
#include "base/file.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

enum { TOKEN_BYTES = 32, TOKEN_SIZE_MAX = 256 };

int function_token_read(struct arena *arena, const char *path, const char **out_token,
                        struct error *error)
{
    struct stat status;
    struct buffer text AUTO_BUFFER;
    buffer_init_secret(&text, TOKEN_SIZE_MAX);
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "the token file \"%.120s\"", path);
    if (status.st_mode & 077)
        return error_set(error, ERROR_REFUSED,
                         "the token file \"%.120s\" can be read by others: chmod 600 it", path);
    if (file_read(path, &text, error) < 0)
        return -1;
    const struct text token = text_trim(buffer_text(&text));
    if (token.size < TOKEN_BYTES || !text_is_plain(token))
        return error_set(error, ERROR_INVALID, "the token file \"%.120s\" has no token", path);
    *out_token = arena_copy_string(arena, token);
    return 0;
}

int function_token_make(struct arena *arena, const char *path, const char **out_token,
                        struct error *error)
{
    uint8_t bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 1];
    if (function_token_read(arena, path, out_token, error) == 0)
        return 0;
    if (error->code != ERROR_NOT_FOUND)
        return -1;
    const char *slash = strrchr(path, '/');
    if (slash && slash > path &&
        file_make_folders(arena_copy_string(arena, (struct text){path, (size_t)(slash - path)}),
                          0700, error) < 0)
        return -1;
    randombytes_buf(bytes, sizeof(bytes));
    text_hex_encode(bytes, sizeof(bytes), text);
    const struct text whole = text_of(text);
    const int result = file_replace(path, &whole, 1, 0600, error);
    *out_token = arena_copy_string(arena, whole);
    sodium_memzero(bytes, sizeof(bytes));
    sodium_memzero(text, sizeof(text));
    return result;
}
