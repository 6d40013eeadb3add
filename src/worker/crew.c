#include "worker/crew.h"

#include "base/assert.h"
#include "worker/crew_internal.h"

#include <stdio.h>
#include <stdlib.h>

struct crew {
    struct crew_lead *lead;     /* of rank 0 */
    struct crew_follow *follow; /* of the others */
};

int crew_open(const struct crew_options *options, struct crew **out_crew, struct error *error)
{
    AUTO(crew) struct crew *crew = calloc(1, sizeof(*crew));
    ASSERT(crew);
    if (options->own.rank > 0)
        crew->follow = crew_follow_new(options);
    else if (crew_lead_open(options, &crew->lead, error) < 0)
        return -1;
    *out_crew = TAKE(crew);
    return 0;
}

void crew_free(struct crew *crew)
{
    if (!crew)
        return;
    crew_lead_free(crew->lead);
    crew_follow_free(crew->follow);
    free(crew);
}

void crew_exit(struct crew *crew, int status)
{
    if (crew->lead)
        crew_lead_exit(crew->lead, status);
    else
        crew_follow_exit(crew->follow, status);
}

/* Nobody tells rank 0 to. */
void crew_launched(struct crew *crew, uint64_t id, int status)
{
    ASSERT(crew->follow);
    crew_follow_launched(crew->follow, id, status);
}

const uint8_t *crew_secret(const struct crew *crew)
{
    ASSERT(crew->lead);
    return crew_lead_secret(crew->lead);
}

void crew_say(const char *text)
{
    fprintf(stderr, "souk: %s\n", text);
}
