#include "cli/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { SECRET_SIZE_MAX = 1024 };

static int read_line(const struct cli *cli, const char **out_secret, struct error *error)
{
    char line[SECRET_SIZE_MAX + 2];
    errno = 0;
    if (!fgets(line, sizeof(line), stdin)) {
        if (errno)
            return error_set_errno(error, errno, "read the password");
        return error_set(error, ERROR_INVALID,
                         "no password was given: type it at a terminal, or pass it as a line of "
                         "standard input");
    }
    size_t size = strcspn(line, "\r\n");
    if (size == sizeof(line) - 1)
        return error_set(error, ERROR_INVALID, "the password is longer than %d bytes",
                         SECRET_SIZE_MAX);
    *out_secret = arena_copy_string(cli->arena, (struct text){line, size});
    explicit_bzero(line, sizeof(line));
    return 0;
}

int secret_read(const struct cli *cli, const char *question, const char **out_secret,
                struct error *error)
{
    struct termios shown;
    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &shown) < 0)
        return read_line(cli, out_secret, error);
    struct termios hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) < 0)
        return error_set_errno(error, errno, "hide what is typed");
    fprintf(stderr, "%s: ", question); /* after hiding: what follows it is not lost or shown */
    fflush(stderr);
    const int result = read_line(cli, out_secret, error);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &shown) < 0 && result == 0)
        return error_set_errno(error, errno, "show what is typed again");
    fputc('\n', stderr);
    return result;
}

int secret_read_new(const struct cli *cli, const char **out_secret, struct error *error)
{
    const char *again;
    if (secret_read(cli, "New password", out_secret, error) < 0)
        return -1;
    if (!isatty(STDIN_FILENO))
        return 0;
    if (secret_read(cli, "The same again", &again, error) < 0)
        return -1;
    if (strcmp(*out_secret, again) != 0)
        return error_set(error, ERROR_INVALID, "the two are not the same; nothing was changed");
    return 0;
}
