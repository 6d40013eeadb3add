#include "cli/secret.h"

#include "base/scope.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
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

/* Signals that would end or stop the program while the terminal hides what is typed. */
static sigset_t ending_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGTSTP);
    return set;
}

/* Waits for a line or one of the blocked signals; *out_signal is 0 for a line. */
static int wait_for_line(int signal_fd, int *out_signal, struct error *error)
{
    struct pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = signal_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    *out_signal = 0;
    while (poll(waits, 2, -1) < 0)
        if (errno != EINTR)
            return error_set_errno(error, errno, "wait for the password");
    if (!waits[1].revents)
        return 0;
    if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return error_set_errno(error, errno, "read a signal");
    *out_signal = (int)info.ssi_signo;
    return 0;
}

/* One question with the signals of `blocked` held back. *out_signal: what came instead of a line;
 * the terminal shows what is typed again in every case. */
static int ask_hidden(const struct cli *cli, const char *question, int signal_fd, int *out_signal,
                      const char **out_secret, struct error *error)
{
    struct termios shown;
    if (tcgetattr(STDIN_FILENO, &shown) < 0)
        return error_set_errno(error, errno, "look at the terminal");
    struct termios hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) < 0)
        return error_set_errno(error, errno, "hide what is typed");
    fprintf(stderr, "%s: ", question); /* after hiding: what follows it is not lost or shown */
    fflush(stderr);
    int result = wait_for_line(signal_fd, out_signal, error);
    if (result == 0 && *out_signal == 0)
        result = read_line(cli, out_secret, error);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &shown) < 0 && result == 0)
        result = error_set_errno(error, errno, "show what is typed again");
    fputc('\n', stderr);
    return result;
}

/* Does what the signal would have done; returns only when the program was stopped and goes on. */
static void take_signal(int signal_number, const sigset_t *before, const sigset_t *blocked)
{
    raise(signal_number);
    pthread_sigmask(SIG_SETMASK, before, NULL);
    pthread_sigmask(SIG_BLOCK, blocked, NULL);
}

int secret_read(const struct cli *cli, const char *question, const char **out_secret,
                struct error *error)
{
    if (!isatty(STDIN_FILENO))
        return read_line(cli, out_secret, error);
    const sigset_t blocked = ending_signals();
    sigset_t before;
    AUTO_FD int signal_fd = signalfd(-1, &blocked, SFD_CLOEXEC);
    if (signal_fd < 0 || pthread_sigmask(SIG_BLOCK, &blocked, &before) != 0)
        return error_set_errno(error, errno, "hold signals back");
    int signal_number = 0, result;
    while ((result = ask_hidden(cli, question, signal_fd, &signal_number, out_secret, error)) ==
               0 &&
           signal_number)
        take_signal(signal_number, &before, &blocked);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

int secret_read_new(const struct cli *cli, const char **out_secret, struct error *error)
{
    const char *again = "";
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
