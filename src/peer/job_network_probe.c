/*
 * What job_network_test runs in its sandboxes: `serve WORD` answers every visitor with the word;
 * `visit NAME=ADDRESS:PORT...` tries each and prints what came of it: the word, or why not.
 * Built without sanitizers, which need calls that the sandbox refuses.
 */
#include "sandbox/stage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000, SILENCE_MS = 400, TRIES = 100 };

static int serve(const char *word)
{
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 16) < 0)
        return 1;
    puts("ready");
    fflush(stdout);
    for (;;) {
        const int fd = accept(listener, NULL, NULL);
        if (fd < 0 || write(fd, word, strlen(word)) < 0)
            return 1;
        close(fd);
    }
}

static const char *try_once(const struct sockaddr_in *address, char word[64])
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    const char *said = NULL;
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno != EINPROGRESS)
        said = strerrorname_np(errno);
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (!said && poll(&wait, 1, SILENCE_MS) == 0)
        said = "silent";
    if (!said && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure)
        said = strerrorname_np(failure);
    wait.events = POLLIN;
    if (!said && poll(&wait, 1, SILENCE_MS) == 0)
        said = "silent";
    if (!said) {
        const ssize_t got = read(fd, word, 63);
        word[got > 0 ? got : 0] = '\0';
        said = word;
    }
    close(fd);
    return said;
}

/* A name that begins with '+' is tried until a word comes. */
static int visit(char *wish)
{
    char *address_text = strchr(wish, '=');
    char *port = address_text ? strchr(address_text, ':') : NULL;
    if (!port)
        return 64;
    *address_text++ = '\0';
    *port++ = '\0';
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtol(port, NULL, 10))};
    if (inet_pton(AF_INET, address_text, &address.sin_addr) != 1)
        return 64;
    char word[64] = "";
    const char *said = try_once(&address, word);
    for (int i = 0; wish[0] == '+' && said != word && i < TRIES; i++) {
        poll(NULL, 0, 50);
        said = try_once(&address, word);
    }
    printf("%s=%s\n", wish, said);
    return 0;
}

int main(int argc, char **argv)
{
    const int skipped = stage_enter(argc, argv);
    argc -= skipped;
    argv += skipped;
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2]);
    if (argc < 3 || strcmp(argv[1], "visit") != 0)
        return 64;
    for (int i = 2; i < argc; i++)
        if (visit(argv[i]) != 0)
            return 64;
    fflush(stdout);
    return 0;
}
