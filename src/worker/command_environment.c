#include "worker/command_environment.h"

#include "base/buffer.h"
#include "net/packet.h"
#include "worker/command_checkpoint.h"

#include <glob.h>
#include <inttypes.h>
#include <souk/library.h>
#include <string.h>
#include <unistd.h>

enum { OWN_VARIABLES = 23, NETWORK_TEXT_MAX = 128 << 10 };

struct command_place command_place_alone(struct arena *arena, const struct work *work)
{
    const struct lease_document *lease = &work->lease;
    struct command_place place = {.rank = lease->rank, .world = lease->world};
    if (!lease_document_has_network(lease))
        return place;
    place.member_count = lease->world < PACKET_RANK_MAX ? lease->world : PACKET_RANK_MAX;
    struct launch_member *members = arena_alloc(arena, place.member_count * sizeof(*members));
    for (uint32_t i = 0; i < place.member_count; i++)
        members[i] = (struct launch_member){.rank = i, .address = packet_address(i)};
    place.members = members;
    return place;
}

/* Where the ranks of the job's network are: SkyPilot's name and ours for all of them, torch's for
 * the first, and ours for this one. Returns how many variables that are. */
static size_t add_network(struct arena *arena, const struct work *work,
                          const struct command_place *place, char **list)
{
    char address[LAUNCH_ADDRESS_SIZE];
    if (place->member_count == 0)
        return 0;
    list[0] = arena_format(arena, "SOUK_ADDRESS=%s",
                           launch_address(packet_address((uint32_t)work->lease.rank), address));
    list[1] =
        arena_format(arena, "MASTER_ADDR=%s", launch_address(place->members[0].address, address));
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, NETWORK_TEXT_MAX);
    for (size_t i = 0; i < place->member_count; i++)
        buffer_append_format(&text, "%s%s", i > 0 ? "\n" : "",
                             launch_address(place->members[i].address, address));
    list[2] = arena_format(arena, "SKYPILOT_NODE_IPS=" TEXT_FORMAT, TEXT_ARGS(buffer_text(&text)));
    list[3] = arena_format(arena, "SOUK_PEERS=" TEXT_FORMAT, TEXT_ARGS(buffer_text(&text)));
    for (char *end = list[3]; *end; end++)
        if (*end == '\n')
            *end = ',';
    return 4;
}

static const char *find_value(char *const *list, size_t count, const char *name)
{
    const size_t size = strlen(name);
    for (size_t i = count; i-- > 0;)
        if (strncmp(list[i], name, size) == 0 && list[i][size] == '=')
            return list[i] + size + 1;
    return "";
}

/* What PYTHONPATH names would come before packages that were installed. */
static bool has_own_sdk(struct arena *arena, const char *virtual_env, bool has_image)
{
    static const char *const of_image[] = {"/usr/lib/python3*/*-packages/souk",
                                           "/usr/local/lib/python3*/*-packages/souk"};
    const char *patterns[] = {
        virtual_env[0] ? arena_format(arena, "%s/lib/python3*/site-packages/souk", virtual_env)
                       : NULL,
        has_image ? of_image[0] : NULL, has_image ? of_image[1] : NULL};
    bool is_there = false;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        glob_t found = {0};
        // NOLINTNEXTLINE(concurrency-mt-unsafe): no ~ and no locale in it
        is_there |= patterns[i] && glob(patterns[i], GLOB_NOSORT, NULL, &found) == 0;
        globfree(&found);
    }
    return is_there;
}

/* So that a script finds `import souk`, unless it brings its own. An image may lack what libsouk
 * needs: there the package tries the one beside it, and then others. */
static size_t add_sdk(struct arena *arena, const struct work *work, char **list, size_t count)
{
    const bool has_image = work->lease.has_image;
    size_t added = 0;
    if (access(LAUNCH_SDK, F_OK) < 0)
        return 0;
    if (!has_own_sdk(arena, find_value(list, count, "VIRTUAL_ENV"), has_image)) {
        const char *path = find_value(list, count, "PYTHONPATH");
        list[count + added++] =
            arena_format(arena, "PYTHONPATH=%s%s" LAUNCH_SDK, path, path[0] ? ":" : "");
    }
    if (!has_image)
        list[count + added++] =
            arena_format(arena, "SOUK_LIBRARY=" LAUNCH_SDK "/souk/libsouk.so.%d", SOUK_ABI_VERSION);
    return added;
}

/* What stands later counts: programs differ in which of two they take, so there is one. */
static size_t keep_last(char **list, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t name = strcspn(list[i], "=") + 1;
        bool is_last = true;
        for (size_t later = i + 1; later < count && is_last; later++)
            is_last = strncmp(list[i], list[later], name) != 0;
        if (is_last)
            list[kept++] = list[i];
    }
    return kept;
}

static size_t add_envs(struct arena *arena, const struct job_env *envs, size_t count, char **list)
{
    for (size_t i = 0; i < count; i++)
        list[i] = arena_format(arena, TEXT_FORMAT "=" TEXT_FORMAT, TEXT_ARGS(envs[i].name),
                               TEXT_ARGS(envs[i].value));
    return count;
}

/* The machine's first, then the image's, the borrower's, and ours last: a borrower cannot unset
 * what Souk says. */
char **command_environment(struct arena *arena, const struct work *work,
                           const struct image_config *image, const struct command_place *place)
{
    const struct lease_document *lease = &work->lease;
    const struct launch *launch = place->launch;
    size_t inherited = 0, count = 0;
    while (environ[inherited])
        inherited++;
    char **list = arena_alloc(arena, (inherited + image->env.count + lease->env_count +
                                      work->secret_count + OWN_VARIABLES + LAUNCH_VARIABLES_MAX) *
                                         sizeof(*list));
    /* What a Python program prints is seen as it prints it, and not lost with it. */
    list[count++] = arena_copy_string(arena, TEXT("PYTHONUNBUFFERED=1"));
    for (size_t i = 0; i < inherited; i++)
        list[count++] = environ[i];
    const struct text *of_image = image->env.items;
    for (size_t i = 0; i < image->env.count; i++)
        list[count++] = arena_copy_string(arena, of_image[i]);
    count += add_envs(arena, lease->envs, lease->env_count, list + count);
    count += add_envs(arena, work->secrets, work->secret_count, list + count);
    list[count++] = arena_format(arena, "SOUK_JOB=%" PRIu64, lease->job);
    list[count++] = arena_format(arena, "SOUK_LEASE=%" PRIu64, lease->lease);
    list[count++] = arena_format(arena, "SOUK_RANK=%" PRIu64, place->rank);
    list[count++] = arena_format(arena, "SOUK_WORLD_SIZE=%" PRIu64, place->world);
    list[count++] = arena_format(arena, "SOUK_CORES_MILLI=%" PRId64, lease->cores_milli);
    list[count++] = arena_format(arena, "SOUK_MEMORY_BYTES=%" PRId64, lease->ram_bytes);
    list[count++] = arena_format(arena, "SOUK_OUTPUT_DIR=%s", work->out_folder);
    list[count++] = arena_format(arena, "SOUK_CHECKPOINT_DIR=%s",
                                 command_checkpoint_folder(arena, work, /* is_of_job= */ true));
    list[count++] = arena_format(arena, "SOUK_RANK_CHECKPOINT_DIR=%s",
                                 command_checkpoint_folder(arena, work, /* is_of_job= */ false));
    list[count++] = arena_format(arena, "SKYPILOT_NODE_RANK=%" PRIu64, place->rank);
    list[count++] = arena_format(arena, "SKYPILOT_NUM_NODES=%" PRIu64, place->world);
    if (place->done_file)
        list[count++] = arena_format(arena, "SOUK_DONE_FILE=%s", place->done_file);
    count += add_network(arena, work, place, list + count);
    count += add_sdk(arena, work, list, count);
    for (size_t i = 0; launch && i < launch->variable_count; i++)
        list[count++] = launch->variables[i];
    list[count++] = arena_format(arena, "HOME=%s", work->work_folder);
    count = keep_last(list, count);
    list[count] = NULL;
    return list;
}
