/* The command line of bubblewrap: what the program sees and what it runs. */
#include "base/text.h"
#include "sandbox/launch_internal.h"
#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOFT_TMP_PART = 8 }; /* of the memory, for /tmp and for /dev/shm each */

#define STRING_OF(number)       STRING_OF_VALUE(number)
#define STRING_OF_VALUE(number) #number
#define USER                    STRING_OF(SANDBOX_USER)

/* What the C library and others ask of /etc. The machine's own names its users. */
static const struct system_file {
    const char *target;
    const char *contents;
} system_files[FILE_COUNT] = {
    {"/etc/passwd", "souk:x:" USER ":" USER ":souk:/lease:/bin/sh\n"},
    {"/etc/group", "souk:x:" USER ":\n"},
    {"/etc/hosts", "127.0.0.1 localhost souk\n::1 localhost\n"},
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
    {"/etc/resolv.conf", NULL}, /* as the options say */
};

void arguments_add(struct arguments *arguments, const char *first, const char *second,
                   const char *third)
{
    const char *const added[] = {first, second, third};
    for (size_t i = 0; i < 3 && added[i]; i++) {
        if (arguments->count + 1 >= ARGUMENT_MAX) {
            arguments->is_overflowed = true;
            return;
        }
        arguments->items[arguments->count++] =
            arena_copy_string(arguments->arena, text_of(added[i]));
    }
}

/* The system's folders as they are here: most are links into /usr today, some machines differ. */
static void arguments_add_system(struct arguments *arguments)
{
    static const char *const folders[] = {"/usr",    "/lib", "/lib32", "/lib64",
                                          "/libx32", "/bin", "/sbin"};
    /* Nothing of an owner's own making, and what Debian's programs keep out of /usr. */
    static const char *const files[] = {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
                                        "/etc/ld.so.conf.d", "/etc/localtime", "/etc/openmpi",
                                        /* hwloc, and through it MPI, ask for the cores. */
                                        "/sys/devices/system/cpu", "/sys/devices/system/node"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char target[PATH_MAX];
        const ssize_t size = readlink(folders[i], target, sizeof(target) - 1);
        if (size > 0) {
            target[size] = '\0';
            arguments_add(arguments, "--symlink", target, folders[i]);
        } else if (access(folders[i], F_OK) == 0) {
            arguments_add(arguments, "--ro-bind", folders[i], folders[i]);
        }
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        arguments_add(arguments, "--ro-bind-try", files[i], files[i]);
    glob_t java = {0};
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no ~ and no locale in it
    if (glob("/etc/java-*-openjdk", 0, NULL, &java) == 0)
        for (size_t i = 0; i < java.gl_pathc; i++)
            arguments_add(arguments, "--ro-bind-try", java.gl_pathv[i], java.gl_pathv[i]);
    globfree(&java);
}

static void command_add_files(struct child *child)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", FILE_FD + i);
        if (child->fds[FILE_FD + i] >= 0)
            arguments_add(&child->arguments, "--ro-bind-data", number, system_files[i].target);
    }
}

static void arguments_add_confinement(struct arguments *arguments, const struct sandbox_host *host,
                                      bool shares_network)
{
    char number[16];
    arguments_add(arguments, host->bwrap, "--unshare-all", "--unshare-user");
    if (shares_network)
        arguments_add(arguments, "--share-net", NULL, NULL);
    if (host->disables_userns)
        arguments_add(arguments, "--disable-userns", NULL, NULL);
    arguments_add(arguments, "--die-with-parent", "--new-session", NULL);
    arguments_add(arguments, "--cap-drop", "ALL", NULL);
    snprintf(number, sizeof(number), "%d", SANDBOX_UID);
    arguments_add(arguments, "--uid", number, NULL);
    arguments_add(arguments, "--gid", number, NULL);
    arguments_add(arguments, "--hostname", "souk", NULL);
    for (int i = 0; i < SECCOMP_FILTER_COUNT; i++) {
        snprintf(number, sizeof(number), "%d", SECCOMP_FD + i);
        arguments_add(arguments, "--add-seccomp-fd", number, NULL);
    }
    snprintf(number, sizeof(number), "%d", INFO_FD);
    arguments_add(arguments, "--info-fd", number, NULL);
}

int sandbox_give_folder(const struct sandbox_host *host, const char *path, struct error *error)
{
    if (host->drops_user && lchown(path, SANDBOX_UID, SANDBOX_UID) < 0)
        return error_set_errno(error, errno, "give \"%s\" to the sandbox's user", path);
    return 0;
}

/* What can be written is given away before: a link there would give away what it points to. An
 * owner's own folders, which are only read, may be links. */
static int command_add_source(struct child *child, const char *path, const char *target,
                              bool is_writable, struct error *error)
{
    struct stat status;
    if ((is_writable ? lstat(path, &status) : stat(path, &status)) < 0)
        return error_set_errno(error, errno, "mount \"%s\"", path);
    if (S_ISLNK(status.st_mode))
        return error_set(error, ERROR_INVALID, "mount \"%s\": it is a link", path);
    struct source *source = &child->sources[child->source_count];
    source->path = path;
    source->is_folder = S_ISDIR(status.st_mode);
    snprintf(source->staged, sizeof(source->staged), "/tmp/%zu", child->source_count);
    child->source_count++;
    if (is_writable && sandbox_give_folder(child->host, path, error) < 0)
        return -1;
    arguments_add(&child->arguments, is_writable ? "--bind" : "--ro-bind",
                  child->host->drops_user ? source->staged : path, target);
    return 0;
}

/* The leased GPUs and the driver's two doors that belong to none of them; its libraries are in
 * /usr. What a driver does not have here is left out, and a GPU that is gone ends the start. */
static void command_add_gpus(struct arguments *arguments, const struct sandbox_options *options)
{
    if (options->gpu_count == 0)
        return;
    char path[32];
    for (size_t i = 0; i < options->gpu_count; i++) {
        snprintf(path, sizeof(path), "/dev/nvidia%d", options->gpus[i]);
        arguments_add(arguments, "--dev-bind", path, path);
    }
    arguments_add(arguments, "--dev-bind-try", "/dev/nvidiactl", "/dev/nvidiactl");
    arguments_add(arguments, "--dev-bind-try", "/dev/nvidia-uvm", "/dev/nvidia-uvm");
}

static int command_add_mounts(struct child *child, const struct sandbox_options *options,
                              struct error *error)
{
    struct arguments *arguments = &child->arguments;
    char size[32];
    arguments_add(arguments, "--proc", "/proc", NULL);
    /* NVIDIA's driver has to write in /proc: never to the kernel's settings. */
    arguments_add(arguments, "--ro-bind", "/proc/sys", "/proc/sys");
    arguments_add(arguments, "--dev", "/dev", NULL);
    /* A cgroup counts what is in them as memory of the job; otherwise nobody does. */
    snprintf(size, sizeof(size), "%" PRId64,
             child->has_soft_limits ? options->memory_bytes / SOFT_TMP_PART
                                    : options->memory_bytes);
    arguments_add(arguments, "--size", size, NULL);
    arguments_add(arguments, "--tmpfs", "/tmp", NULL);
    /* /dev/shm would be a second, unbounded memory file system. */
    arguments_add(arguments, "--size", size, NULL);
    arguments_add(arguments, "--tmpfs", "/dev/shm", NULL);
    command_add_gpus(arguments, options);
    char program[PATH_MAX];
    if (host_program(child->host, program, error) < 0)
        return -1;
    const char *kept = arena_copy_string(arguments->arena, text_of(program));
    if (command_add_source(child, kept, "/souk", false, error) < 0)
        return -1;
    for (size_t i = 0; i < options->mount_count; i++) {
        const struct sandbox_mount *mount = &options->mounts[i];
        if (command_add_source(child, mount->source, mount->target, mount->is_writable, error) < 0)
            return -1;
    }
    /* The root and /dev are tmpfs of no bounded size that hold mount points and devices: nothing is
     * to be written there. */
    arguments_add(arguments, "--remount-ro", "/dev", NULL);
    arguments_add(arguments, "--remount-ro", "/", NULL);
    return 0;
}

/* The program's own first step, where the kernel has what it is for. */
static void command_add_stage(struct child *child, const struct sandbox_options *options)
{
    struct arguments *arguments = &child->arguments;
    if (options->root)
        command_add_loader(arguments, &child->host->loader);
    if (child->host->landlock_abi == 0)
        return;
    arguments_add(arguments, "/souk", STAGE_WORD, NULL);
    if (child->counts_inside) {
        char number[24];
        snprintf(number, sizeof(number), "%" PRIu64, (uint64_t)child->process_count);
        arguments_add(arguments, "--processes", number, NULL);
    }
    if (options->set_up_network || options->shares_network)
        arguments_add(arguments, "--network", NULL, NULL);
    if (options->gpu_count > 0)
        arguments_add(arguments, "--proc", NULL, NULL);
    arguments_add(arguments, "--write", "/tmp", NULL);
    arguments_add(arguments, "--write", "/dev/shm", NULL);
    for (size_t i = 0; i < options->mount_count; i++)
        if (options->mounts[i].is_writable)
            arguments_add(arguments, "--write", options->mounts[i].target, NULL);
    arguments_add(arguments, "--", NULL, NULL);
}

int command_build(struct child *child, const struct sandbox_options *options, struct error *error)
{
    struct arguments *arguments = &child->arguments;
    arguments_add_confinement(arguments, child->host, options->shares_network);
    if (options->set_up_network) {
        char number[16];
        snprintf(number, sizeof(number), "%d", HOLD_FD);
        arguments_add(arguments, "--block-fd", number, NULL);
    }
    if (!options->root)
        arguments_add_system(arguments);
    else if (command_add_root(child, options->root, error) < 0)
        return -1;
    /* Who resolves names also asks others who they are. */
    if (!options->root && (options->resolv_conf || options->shares_network))
        arguments_add(arguments, "--ro-bind-try", "/etc/ssl/certs", "/etc/ssl/certs");
    if (options->shares_network) {
        arguments_add(arguments, "--ro-bind-try", "/etc/hosts", "/etc/hosts");
        arguments_add(arguments, "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf");
    }
    command_add_files(child);
    if (command_add_mounts(child, options, error) < 0)
        return -1;
    arguments_add(arguments, "--chdir", options->working_dir ? options->working_dir : "/", NULL);
    arguments_add(arguments, "--clearenv", NULL, NULL);
    for (size_t i = 0; options->environment && options->environment[i]; i++) {
        struct text name, value;
        if (!text_cut(text_of(options->environment[i]), '=', &name, &value))
            return error_set(error, ERROR_INVALID, "environment \"%s\" has no '='",
                             options->environment[i]);
        arguments_add(arguments, "--setenv", arena_copy_string(arguments->arena, name), value.data);
    }
    arguments_add(arguments, "--", NULL, NULL);
    command_add_stage(child, options);
    for (size_t i = 0; options->argv[i]; i++)
        arguments_add(arguments, options->argv[i], NULL, NULL);
    if (arguments->is_overflowed)
        return error_set(error, ERROR_INVALID, "too many arguments for a sandbox");
    arguments->items[arguments->count] = NULL;
    return 0;
}

static int file_open(const struct system_file *file, const char *contents, int *out_fd,
                     struct error *error)
{
    AUTO_FD int fd = memfd_create("souk-file", MFD_CLOEXEC);
    const size_t size = strlen(contents);
    if (fd < 0 || write(fd, contents, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "write \"%s\"", file->target);
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* An image names its users itself; what belongs to the network is ours there too. */
static bool is_shown(const struct system_file *file, const struct sandbox_options *options)
{
    const char *name = strrchr(file->target, '/') + 1;
    if (options->shares_network && strcmp(name, "hosts") == 0)
        return false; /* the machine's is */
    if (!options->root)
        return true;
    return (strcmp(name, "hosts") == 0 || strcmp(name, "resolv.conf") == 0) &&
           root_has_file(options->root, name);
}

int command_open_files(const struct sandbox_options *options, int out_fds[FILE_COUNT],
                       struct error *error)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        const struct system_file *file = &system_files[i];
        const char *contents = file->contents ? file->contents : options->resolv_conf;
        if (contents && is_shown(file, options) &&
            file_open(file, contents, &out_fds[i], error) < 0)
            return -1;
    }
    return 0;
}
