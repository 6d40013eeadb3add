/*
 * Every call of include/souk/client.h against a real market, for test_library.py: under a
 * sanitizer, which cannot be loaded into Python, it finds what they leak or touch. Ends with 0 and
 * "all well", or names the line that was not as it should be.
 *
 * Usage: library_calls SHORT_JOB_FILE ENDLESS_JOB_FILE; the market is the environment's.
 */
#include <souk/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s; the last error: %s\n", __LINE__, #condition,             \
                    error.message);                                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct souk_error error;
static int notes;

static void count_note(void *context, const char *what)
{
    (void)context;
    notes += what[0] != '\0';
}

static int has(char *text, const char *words)
{
    const int found = text && strstr(text, words) != NULL;
    souk_text_free(text);
    return found;
}

static void refuse_what_is_wrong(struct souk_client *client)
{
    struct souk_client *none = NULL;
    const struct souk_connect_options nowhere = {.size = sizeof(nowhere),
                                                 .server = "http://127.0.0.1:1"};
    const struct souk_job_text wrong = {.size = sizeof(wrong), .yaml = "name: x\nruns: true\n"};
    char *text = NULL;
    uint64_t job = 0;
    EXPECT(souk_client_connect(&nowhere, &none, &error) < 0 && error.message[0]);
    EXPECT(souk_job_validate(&wrong, &text, &error) < 0 && strstr(error.message, "runs"));
    EXPECT(souk_client_quote(client, &wrong, &text, &error) < 0);
    EXPECT(souk_client_submit(client, &wrong, NULL, &job, &error) < 0);
    EXPECT(souk_client_job(client, 999999, &text, &error) < 0);
    EXPECT(souk_client_cancel(client, 999999, &text, &error) < 0);
    EXPECT(souk_client_get(client, "/v1/nothing", &text, &error) < 0);
    EXPECT(souk_client_wait(client, 999999, 1000, &text, &error) < 0);
    EXPECT(souk_client_fetch(client, 999999, NULL, &text, &error) < 0);
    EXPECT(text == NULL && job == 0 && none == NULL);
    souk_client_free(NULL);
    souk_follow_free(NULL);
    souk_text_free(NULL);
}

/* Its events to the end, or to the first, whose following is then given up. */
static int follow(struct souk_client *client, uint64_t job, int is_whole)
{
    struct souk_follow *following = NULL;
    const struct souk_event *event = NULL;
    int events = 0, result = 0;
    EXPECT(souk_follow_open(client, job, SOUK_EVENT_STATE | SOUK_EVENT_LOG | SOUK_EVENT_METRIC,
                            &following, &error) == 0);
    while ((is_whole || events == 0) &&
           (result = souk_follow_next(following, -1, &event, &error)) == 1)
        events += event->text_size > 0;
    EXPECT(result >= 0);
    if (!is_whole)
        souk_follow_stop(following);
    else
        EXPECT(strstr(souk_follow_job(following), "succeeded"));
    souk_follow_free(following);
    return events;
}

static void run_to_the_end(struct souk_client *client, const char *path)
{
    const struct souk_job_text text = {.size = sizeof(text), .name = path};
    const struct souk_submit_options options = {.size = sizeof(options), .on_note = count_note};
    const struct souk_fetch_options fetch = {.size = sizeof(fetch), .folder = "result"};
    const struct souk_fetch_options lacking = {
        .size = sizeof(lacking), .folder = "result", .name = "no-such-file"};
    char *answer = NULL;
    uint64_t job = 0;
    EXPECT(souk_job_validate(&text, &answer, &error) == 0 && has(answer, "name:"));
    EXPECT(souk_client_quote(client, &text, &answer, &error) == 0 && has(answer, "max_run_ms"));
    EXPECT(souk_client_submit(client, &text, &options, &job, &error) == 0 && job > 0);
    EXPECT(follow(client, job, /* is_whole= */ 1) > 1);
    EXPECT(souk_client_wait(client, job, -1, &answer, &error) >= 0 && has(answer, "succeeded"));
    EXPECT(souk_client_job(client, job, &answer, &error) == 0 && has(answer, "succeeded"));
    EXPECT(souk_client_jobs(client, 5, &answer, &error) == 0 && has(answer, "hello"));
    EXPECT(souk_client_get(client, "/v1/account", &answer, &error) == 0 && has(answer, "borrower"));
    EXPECT(souk_client_fetch(client, job, &fetch, &answer, &error) == 0 && has(answer, "answer"));
    EXPECT(souk_client_fetch(client, job, &lacking, &answer, &error) < 0);
}

static void end_before_its_end(struct souk_client *client, const char *path)
{
    const volatile int32_t stop = 1;
    const struct souk_job_text text = {.size = sizeof(text), .name = path};
    const struct souk_submit_options stopped = {.size = sizeof(stopped), .stop = &stop};
    char *answer = NULL;
    uint64_t job = 0;
    EXPECT(souk_client_submit(client, &text, &stopped, &job, &error) < 0 &&
           error.code == SOUK_STOPPED);
    EXPECT(souk_client_submit(client, &text, NULL, &job, &error) == 0);
    EXPECT(follow(client, job, /* is_whole= */ 0) == 1);
    EXPECT(souk_client_wait(client, job, 10, &answer, &error) < 0 || has(answer, "running"));
    EXPECT(souk_client_cancel(client, job, &answer, &error) == 0 && has(answer, "state"));
    EXPECT(souk_client_wait(client, job, -1, &answer, &error) >= 0 && has(answer, "cancelled"));
}

int main(int argc, char **argv)
{
    struct souk_client *client = NULL;
    EXPECT(argc == 3);
    EXPECT(souk_client_connect(NULL, &client, &error) == 0);
    EXPECT(strncmp(souk_client_server(client), "http", 4) == 0);
    refuse_what_is_wrong(client);
    run_to_the_end(client, argv[1]);
    end_before_its_end(client, argv[2]);
    souk_client_free(client);
    printf("all well\n");
    return 0;
}
