/* Attempts on files: to write outside, to read what is the owner's, to reach devices. */
#include "sandbox/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static long try_create(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static long try_write(const char *path)
{
    return open(path, O_WRONLY | O_CLOEXEC);
}

static long try_read(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC);
}

#define ATTEMPT(name, call)                                                                        \
    static long name(const struct escape_targets *targets)                                         \
    {                                                                                              \
        (void)targets;                                                                             \
        return (call);                                                                             \
    }

ATTEMPT(create_in_root, try_create("/x"))
ATTEMPT(create_in_usr, try_create("/usr/bin/x"))
ATTEMPT(create_in_etc, try_create("/etc/x"))
ATTEMPT(create_in_data, try_create("/data/x"))
ATTEMPT(create_in_dev, try_create("/dev/x"))
ATTEMPT(create_in_proc, try_create("/proc/x"))
ATTEMPT(overwrite_the_program, try_write("/souk"))
ATTEMPT(overwrite_a_library, try_write("/usr/lib/os-release"))
ATTEMPT(overwrite_passwd, try_write("/etc/passwd"))
ATTEMPT(unlink_a_program, unlink("/usr/bin/env"))
ATTEMPT(chmod_a_program, chmod("/usr/bin/env", 04777))
ATTEMPT(write_core_pattern, try_write("/proc/sys/kernel/core_pattern"))
ATTEMPT(write_sysrq, try_write("/proc/sysrq-trigger"))
ATTEMPT(write_uid_map, try_write("/proc/self/uid_map"))
ATTEMPT(write_drop_caches, try_write("/proc/sys/vm/drop_caches"))
ATTEMPT(read_shadow, try_read("/etc/shadow"))
ATTEMPT(read_ssh_key, try_read("/etc/ssh/ssh_host_ed25519_key"))
ATTEMPT(list_home, try_read("/home"))
ATTEMPT(list_root_home, try_read("/root"))
ATTEMPT(list_var, try_read("/var"))
ATTEMPT(list_run, try_read("/run"))
ATTEMPT(read_secret, try_read(targets->secret))
ATTEMPT(read_kernel_memory, try_read("/proc/kcore"))
ATTEMPT(open_dev_mem, try_read("/dev/mem"))
ATTEMPT(open_dev_kmsg, try_read("/dev/kmsg"))
ATTEMPT(open_dev_disk, try_read("/dev/vda"))
ATTEMPT(open_dev_kvm, try_read("/dev/kvm"))
ATTEMPT(open_dev_fuse, try_read("/dev/fuse"))
ATTEMPT(open_dev_tun, try_read("/dev/net/tun"))
ATTEMPT(open_dev_loop, try_read("/dev/loop-control"))
ATTEMPT(open_dev_input, try_read("/dev/input/event0"))
ATTEMPT(open_dev_gpu, try_read("/dev/nvidia0"))
ATTEMPT(open_cgroup, try_read("/sys/fs/cgroup"))
ATTEMPT(raise_memory_limit_v1, try_write("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
ATTEMPT(raise_memory_limit_v2, try_write("/sys/fs/cgroup/memory.max"))
ATTEMPT(leave_cgroup, try_write("/sys/fs/cgroup/cgroup.procs"))
ATTEMPT(freeze_others, try_write("/sys/fs/cgroup/freezer/freezer.state"))
ATTEMPT(link_out_of_usr, link("/usr/bin/env", "/lease/env"))
ATTEMPT(rename_into_data, rename("/lease/own", "/data/own"))
ATTEMPT(make_a_device, mknod("/lease/disk", S_IFBLK | 0600, makedev(254, 0)))
ATTEMPT(make_mem_device, mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)))
ATTEMPT(give_away_a_file, chown("/lease/own", 0, 0))

/* Through the folders of the first process, which might be one of the host's. */
ATTEMPT(read_through_init_root, try_read("/proc/1/root/etc/shadow"))
ATTEMPT(list_through_init_cwd, try_read("/proc/1/cwd/root"))

static long read_environment_of_owner(const struct escape_targets *targets)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", targets->pid);
    return try_read(path);
}

/* A link is followed here, inside: what it names outside does not exist. */
static long follow_own_link(const struct escape_targets *targets)
{
    unlink("/lease/link");
    if (symlink(targets->secret, "/lease/link") < 0)
        return -1;
    return try_read("/lease/link");
}

static long walk_up(const struct escape_targets *targets)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "/lease/../../../../../..%s", targets->secret);
    return try_read(path);
}

static long use_leaked_descriptor(const struct escape_targets *targets)
{
    errno = EBADF;
    return targets->leaked_fd;
}

const struct escape_attempt escape_files[] = {
    {"create a file in /", create_in_root, "EROFS|EACCES"},
    {"create a file in /usr", create_in_usr, "EROFS|EACCES"},
    {"create a file in /etc", create_in_etc, "EROFS|EACCES"},
    {"create a file in /data", create_in_data, "EROFS|EACCES"},
    {"create a file in /dev", create_in_dev, "EROFS|EACCES"},
    {"create a file in /proc", create_in_proc, "ENOENT|EACCES"},
    {"overwrite the daemon's program", overwrite_the_program, "EROFS|EACCES|ETXTBSY"},
    {"overwrite a file of the system", overwrite_a_library, "EROFS|EACCES"},
    {"overwrite /etc/passwd", overwrite_passwd, "EROFS|EACCES"},
    {"remove a program", unlink_a_program, "EROFS|EACCES"},
    {"make a program setuid", chmod_a_program, "EROFS|EPERM"},
    {"set the core pattern", write_core_pattern, "EROFS|EACCES"},
    {"press SysRq", write_sysrq, "EROFS|EACCES|ENOENT"},
    {"map users anew", write_uid_map, "EACCES|EPERM"},
    {"drop the host's caches", write_drop_caches, "EROFS|EACCES"},
    {"read /etc/shadow", read_shadow, "ENOENT"},
    {"read a host key", read_ssh_key, "ENOENT"},
    {"list /home", list_home, "ENOENT"},
    {"list root's home", list_root_home, "ENOENT"},
    {"list /var", list_var, "ENOENT"},
    {"list /run", list_run, "ENOENT"},
    {"read a file of the owner", read_secret, "ENOENT"},
    {"read the kernel's memory", read_kernel_memory, "EACCES|EPERM|ENOENT"},
    {"open /dev/mem", open_dev_mem, "ENOENT"},
    {"open /dev/kmsg", open_dev_kmsg, "ENOENT"},
    {"open a disk", open_dev_disk, "ENOENT"},
    {"open /dev/kvm", open_dev_kvm, "ENOENT"},
    {"open /dev/fuse", open_dev_fuse, "ENOENT"},
    {"open /dev/net/tun", open_dev_tun, "ENOENT"},
    {"open a loop device", open_dev_loop, "ENOENT"},
    {"open an input device", open_dev_input, "ENOENT"},
    {"open a GPU that is not leased", open_dev_gpu, "ENOENT"},
    {"look at the cgroups", open_cgroup, "ENOENT"},
    {"raise its memory limit, v1", raise_memory_limit_v1, "ENOENT"},
    {"raise its memory limit, v2", raise_memory_limit_v2, "ENOENT"},
    {"leave its cgroup", leave_cgroup, "ENOENT"},
    {"freeze others", freeze_others, "ENOENT"},
    {"take a hard link out of /usr", link_out_of_usr, "EXDEV|EROFS|EACCES|EPERM"},
    {"move a file into /data", rename_into_data, "EXDEV|EROFS|EACCES"},
    {"make a block device", make_a_device, "EPERM|EACCES"},
    {"make a memory device", make_mem_device, "EPERM|EACCES"},
    {"give a file to root", give_away_a_file, "EINVAL|EPERM"},
    {"read through the root of process 1", read_through_init_root, "EACCES|ENOENT"},
    {"list through the folder of process 1", list_through_init_cwd, "EACCES|ENOENT"},
    {"read the environment of the owner's process", read_environment_of_owner, "ENOENT"},
    {"follow a link of its own outside", follow_own_link, "ENOENT"},
    {"walk up and out of its folder", walk_up, "ENOENT"},
    {"use an inherited descriptor", use_leaked_descriptor, "EBADF"},
    {NULL, NULL, NULL},
};
