/*
 * The program daemon_test has its leases run: it does what the market writes into its stream.
 *
 * LINE        what it does
 * done        writes a result, sends it back, ends well
 * checkpoint  writes and announces one result a hundred times, then as for done
 * large       as done, with a result of 9 MiB
 * huge        as done, with a result of 17 MiB that takes no room on the disk
 * absurd      the same, of 1 TiB
 * flood       sends long reports for ever
 * last        sends more than is read at once, ends well, and lives on until its stream is gone
 * crash       ends with code 3
 * nonsense    says what is no message, and waits
 * stubborn    ignores every wish to end
 * other       sends the line back in upper case
 */
#include "peer/tenancy.h"
#include "runtime/child_message.h"
#include "sandbox/stage.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
/* Looking for leaks needs ptrace, which the sandbox refuses. */
const char *__asan_default_options(void); // NOLINT: the sanitizer's name
const char *__asan_default_options(void)  // NOLINT
{
    return "detect_leaks=0";
}
#endif

static void tell(const struct child_message *message)
{
    struct error error;
    if (child_message_send(CHILD_FD, message, -1, &error) < 0)
        _exit(10);
}

static void report_data(void)
{
    uint8_t bytes[64] = {0};
    char json[256];
    const int fd = open("/data/train-labels", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    snprintf(json, sizeof(json), "{\"size\":%zd,\"count\":%d,\"first\":%d,\"last\":%d}", size,
             bytes[7], bytes[8], size > 0 ? bytes[size - 1] : -1);
    tell(&(struct child_message){.kind = CHILD_REPORT, .report.json = text_of(json)});
}

static void send_result(const char *text)
{
    FILE *file = fopen("/lease/out/model", "we");
    if (!file)
        _exit(11);
    fputs(text, file);
    fclose(file);
    tell(&(struct child_message){.kind = CHILD_ARTIFACT, .artifact.name = TEXT("model")});
}

static void send_sized_result(off_t size)
{
    const int fd = open("/lease/out/model", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, size) < 0)
        _exit(11);
    close(fd);
    tell(&(struct child_message){.kind = CHILD_ARTIFACT, .artifact.name = TEXT("model")});
}

static void say_done(bool is_ok, const char *message)
{
    tell(&(struct child_message){.kind = CHILD_DONE,
                                 .done = {.is_ok = is_ok, .message = text_of(message)}});
}

static void done(bool is_ok, const char *message)
{
    say_done(is_ok, message);
    _exit(0);
}

static void send_long_report(void)
{
    static char json[CHILD_REPORT_MAX];
    memset(json, ' ', sizeof(json));
    tell(&(struct child_message){.kind = CHILD_REPORT, .report.json = {json, sizeof(json)}});
}

static void say_last_words(int stream)
{
    char byte;
    for (int i = 0; i < TENANCY_TALK_BYTES / CHILD_REPORT_MAX + 2; i++)
        send_long_report();
    say_done(true, "trained");
    close(CHILD_FD);
    if (write(stream, "gone\n", 5) != 5)
        _exit(12);
    while (read(stream, &byte, 1) == 1)
        ;
    _exit(0);
}

static struct child_stream newest; /* whose stream it was given last */

static void obey(int stream, const char *line)
{
    if (strcmp(line, "done\n") == 0) {
        send_result("weights");
        done(true, "trained");
    } else if (strcmp(line, "checkpoint\n") == 0) {
        for (int i = 0; i < 100; i++)
            send_result("not yet");
        send_result("weights");
        done(true, "trained");
    } else if (strcmp(line, "large\n") == 0) {
        send_sized_result((off_t)9 << 20);
        done(true, "trained");
    } else if (strcmp(line, "huge\n") == 0) {
        send_sized_result(17 << 20);
        done(true, "trained");
    } else if (strcmp(line, "absurd\n") == 0) {
        send_sized_result((off_t)1 << 40);
        done(true, "trained");
    } else if (strcmp(line, "flood\n") == 0) {
        for (;;)
            send_long_report();
    } else if (strcmp(line, "last\n") == 0) {
        say_last_words(stream);
    } else if (strcmp(line, "crash\n") == 0) {
        _exit(3);
    } else if (strcmp(line, "nonsense\n") == 0) {
        char garbage[4096];
        memset(garbage, 0xff, sizeof(garbage));
        if (write(CHILD_FD, garbage, sizeof(garbage)) < 0)
            _exit(13);
        for (;;)
            pause();
    } else if (strcmp(line, "stubborn\n") == 0) {
        signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    } else if (strcmp(line, "whose\n") == 0) {
        if (dprintf(stream, "%s %u of term %u\n", lease_role_name(newest.peer_role),
                    newest.peer_rank, (unsigned)newest.peer_fence) < 0)
            _exit(12);
    } else {
        char reply[64] = "";
        for (size_t i = 0; line[i] && i < sizeof(reply) - 1; i++)
            reply[i] = (char)toupper((unsigned char)line[i]);
        if (write(stream, reply, strlen(reply)) < 0)
            _exit(12);
    }
}

static void on_stream(int stream)
{
    char line[64];
    size_t size = 0;
    while (size < sizeof(line) - 1 && read(stream, line + size, 1) == 1)
        if (line[size++] == '\n')
            break;
    line[size] = '\0';
    if (size > 0)
        obey(stream, line);
}

static void on_message(struct arena *arena, int *stream)
{
    struct child_message message;
    struct error error;
    bool has_ended = false;
    arena_clear(arena);
    if (child_message_receive(CHILD_FD, arena, &message, &has_ended, &error) < 0)
        _exit(1);
    if (message.kind == CHILD_CONFIG) {
        printf("hello\n");
        fflush(stdout);
        fprintf(stderr, "oops\n");
        report_data();
        tell(&(struct child_message){.kind = CHILD_READY});
    } else if (message.kind == CHILD_STREAM) {
        newest = message.stream;
        *stream = message.stream.fd;
    } else if (message.kind == CHILD_STOP) {
        done(false, "asked to stop");
    }
}

int main(int argc, char **argv)
{
    const int skipped = stage_enter(argc, argv);
    argc -= skipped;
    argv += skipped;
    if (argc != 2 || strcmp(argv[1], "worker") != 0)
        return 64;
    AUTO(arena) struct arena *arena = arena_new(0);
    int stream = -1;
    for (;;) {
        struct pollfd waits[] = {{.fd = CHILD_FD, .events = POLLIN},
                                 {.fd = stream, .events = POLLIN}};
        if (poll(waits, 2, -1) < 0)
            return 2;
        if (waits[1].revents)
            on_stream(stream);
        if (waits[0].revents)
            on_message(arena, &stream);
    }
}
