/*
 * Submits a job file to the market that `souk account open` wrote down, shows what its ranks print,
 * and fetches what it leaves into the folder "result".
 *
 *     cc -o submit submit.c -lsouk && ./submit job.yaml
 */
#include <souk/client.h>
#include <stdio.h>

static int complain(const struct souk_error *error)
{
    fprintf(stderr, "%s: %s\n", souk_error_code_name(error->code), error->message);
    return 1;
}

static int show_logs(struct souk_client *client, uint64_t job, struct souk_error *error)
{
    struct souk_follow *follow;
    const struct souk_event *event;
    int result;
    if (souk_follow_open(client, job, SOUK_EVENT_STATE | SOUK_EVENT_LOG, &follow, error) < 0)
        return -1;
    while ((result = souk_follow_next(follow, -1, &event, error)) == 1) {
        if (event->kind == SOUK_EVENT_LOG)
            printf("rank %s: %.*s", event->rank, (int)event->text_size, event->text);
        else
            printf("job %llu: %s\n", (unsigned long long)job, event->text);
    }
    if (result == 0)
        printf("%s\n", souk_follow_job(follow));
    souk_follow_free(follow);
    return result;
}

int main(int argc, char **argv)
{
    struct souk_client *client;
    struct souk_error error;
    uint64_t job;
    char *paths = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: %s JOB_FILE\n", argv[0]);
        return 2;
    }
    const struct souk_job_text text = {.size = sizeof(text), .name = argv[1]};
    const struct souk_fetch_options fetch = {.size = sizeof(fetch), .folder = "result"};
    if (souk_client_connect(NULL, &client, &error) < 0)
        return complain(&error);
    int result = souk_client_submit(client, &text, NULL, &job, &error);
    if (result == 0)
        result = show_logs(client, job, &error);
    if (result == 0)
        result = souk_client_fetch(client, job, &fetch, &paths, &error);
    if (result == 0)
        printf("fetched %s\n", paths);
    souk_text_free(paths);
    souk_client_free(client);
    return result < 0 ? complain(&error) : 0;
}
