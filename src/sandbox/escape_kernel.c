/* Attempts on the kernel itself: mounts, modules, clocks and its rarely needed doors. */
#include "sandbox/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define ATTEMPT(name, call)                                                                        \
    static long name(const struct escape_targets *targets)                                         \
    {                                                                                              \
        (void)targets;                                                                             \
        return (call);                                                                             \
    }

ATTEMPT(mount_tmpfs, mount("none", "/tmp", "tmpfs", 0, NULL))
ATTEMPT(mount_proc, mount("proc", "/tmp", "proc", 0, NULL))
ATTEMPT(mount_cgroup, mount("none", "/tmp", "cgroup2", 0, NULL))
ATTEMPT(mount_writable, mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL))
ATTEMPT(unmount_tmp, umount2("/tmp", MNT_DETACH))
ATTEMPT(pivot_root, syscall(SYS_pivot_root, "/tmp", "/tmp"))
ATTEMPT(change_root, chroot("/tmp"))
ATTEMPT(open_file_system, syscall(SYS_fsopen, "tmpfs", 0))
ATTEMPT(copy_mount, syscall(SYS_open_tree, AT_FDCWD, "/", 1))
ATTEMPT(move_a_mount, syscall(SYS_move_mount, 0, "", 0, "", 0))
ATTEMPT(set_mount_attributes, syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0))
ATTEMPT(open_by_handle, syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY))
ATTEMPT(name_by_handle, syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0))
ATTEMPT(watch_all_files, syscall(SYS_fanotify_init, 0, 0))
ATTEMPT(set_quota, syscall(SYS_quotactl, 0, NULL, 0, NULL))
ATTEMPT(load_bpf, syscall(SYS_bpf, 0, NULL, 0))
ATTEMPT(watch_events, syscall(SYS_perf_event_open, &(struct perf_event_attr){0}, 0, -1, -1, 0))
ATTEMPT(handle_faults, syscall(SYS_userfaultfd, 0))
ATTEMPT(set_up_io_uring, syscall(SYS_io_uring_setup, 1, &(struct io_uring_params){0}))
ATTEMPT(enter_io_uring, syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0))
ATTEMPT(read_keys, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1))
ATTEMPT(add_key, syscall(SYS_add_key, "user", "x", "x", 1, KEY_SPEC_USER_KEYRING))
ATTEMPT(request_key, syscall(SYS_request_key, "user", "x", NULL, 0))
ATTEMPT(load_kernel, syscall(SYS_kexec_load, 0, 0, NULL, 0))
ATTEMPT(load_kernel_file, syscall(SYS_kexec_file_load, 0, 0, 0, NULL, 0))
ATTEMPT(load_module, syscall(SYS_init_module, NULL, 0, ""))
ATTEMPT(load_module_file, syscall(SYS_finit_module, 0, "", 0))
ATTEMPT(remove_module, syscall(SYS_delete_module, "x", 0))
ATTEMPT(restart_machine, syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
                                 LINUX_REBOOT_CMD_CAD_OFF, NULL))
ATTEMPT(swap_on, swapon("/lease/own", 0))
ATTEMPT(swap_off, swapoff("/lease/own"))
ATTEMPT(account_processes, acct("/lease/own"))
ATTEMPT(read_kernel_log, syscall(SYS_syslog, 3, NULL, 0))
ATTEMPT(set_time_of_day, settimeofday(&(struct timeval){1, 0}, NULL))
ATTEMPT(set_clock, clock_settime(CLOCK_REALTIME, &(struct timespec){1, 0}))
ATTEMPT(adjust_time, adjtimex(&(struct timex){.modes = ADJ_FREQUENCY}))
ATTEMPT(adjust_clock, clock_adjtime(CLOCK_REALTIME, &(struct timex){.modes = ADJ_FREQUENCY}))
ATTEMPT(set_host_name, sethostname("x", 1))
ATTEMPT(set_domain_name, setdomainname("x", 1))
ATTEMPT(weaken_address_space, personality(ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC))
ATTEMPT(hide_memory, syscall(SYS_memfd_secret, 0))
ATTEMPT(move_pages, syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0))
ATTEMPT(make_queue, syscall(SYS_mq_open, "/x", O_CREAT | O_RDWR, 0600, NULL))
ATTEMPT(unknown_call, syscall(9999, 0))
ATTEMPT(wait_for_all_writes, syscall(SYS_syncfs, 0))

/* The terminal the daemon may have been started from. */
static long type_into_terminal(const struct escape_targets *targets)
{
    (void)targets;
    return ioctl(STDIN_FILENO, TIOCSTI, "x");
}

/* The filter looks at 64 bits, the kernel at 32. */
static long type_with_high_bits(const struct escape_targets *targets)
{
    (void)targets;
    return syscall(SYS_ioctl, STDIN_FILENO, (1UL << 32) | TIOCSTI, "x");
}

#if defined(__x86_64__)
ATTEMPT(set_io_level, syscall(SYS_iopl, 3))
ATTEMPT(open_io_ports, syscall(SYS_ioperm, 0, 1, 1))
ATTEMPT(change_descriptor_table, syscall(SYS_modify_ldt, 0, NULL, 0))

/* The calls of another architecture have other numbers, past a filter that does not look. */
static long call_as_i386(const struct escape_targets *targets)
{
    (void)targets;
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "cc"); /* getpid */
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

ATTEMPT(call_as_x32, syscall(0x40000000 | SYS_getpid))
#endif

const struct escape_attempt escape_kernel[] = {
    {"mount a tmpfs", mount_tmpfs, "EPERM"},
    {"mount another /proc", mount_proc, "EPERM"},
    {"mount the cgroups", mount_cgroup, "EPERM"},
    {"make the root writable", mount_writable, "EPERM"},
    {"unmount /tmp", unmount_tmp, "EPERM"},
    {"change the root by pivot_root", pivot_root, "EPERM"},
    {"change the root by chroot", change_root, "EPERM"},
    {"mount by fsopen", open_file_system, "EPERM"},
    {"copy a mount", copy_mount, "EPERM"},
    {"move a mount", move_a_mount, "EPERM"},
    {"change a mount", set_mount_attributes, "EPERM"},
    {"open by handle", open_by_handle, "EPERM"},
    {"get a handle", name_by_handle, "EPERM"},
    {"watch all files", watch_all_files, "EPERM"},
    {"set a quota", set_quota, "EPERM"},
    {"load a BPF program", load_bpf, "EPERM"},
    {"watch events of the machine", watch_events, "EPERM"},
    {"handle page faults", handle_faults, "EPERM"},
    {"set up io_uring", set_up_io_uring, "EPERM"},
    {"enter io_uring", enter_io_uring, "EPERM"},
    {"read the owner's keys", read_keys, "EPERM"},
    {"add a key", add_key, "EPERM"},
    {"request a key", request_key, "EPERM"},
    {"load a kernel", load_kernel, "EPERM"},
    {"load a kernel from a file", load_kernel_file, "EPERM"},
    {"load a module", load_module, "EPERM"},
    {"load a module from a file", load_module_file, "EPERM"},
    {"remove a module", remove_module, "EPERM"},
    {"restart the machine", restart_machine, "EPERM"},
    {"swap on its file", swap_on, "EPERM"},
    {"swap off", swap_off, "EPERM"},
    {"keep account of processes", account_processes, "EPERM"},
    {"read the kernel's log", read_kernel_log, "EPERM"},
    {"set the time of day", set_time_of_day, "EPERM"},
    {"set the clock", set_clock, "EPERM"},
    {"adjust the time", adjust_time, "EPERM"},
    {"adjust the clock", adjust_clock, "EPERM"},
    {"name the machine", set_host_name, "EPERM"},
    {"name its domain", set_domain_name, "EPERM"},
    {"weaken its address space", weaken_address_space, "ENOSYS|EPERM"},
    {"hide memory", hide_memory, "EPERM"},
    {"move pages of init", move_pages, "EPERM"},
    {"make a message queue", make_queue, "ENOSYS"},
    {"make a call of tomorrow's kernel", unknown_call, "ENOSYS"},
    {"have all writes waited for", wait_for_all_writes, "EPERM"},
    {"type into the owner's terminal", type_into_terminal, "EPERM"},
    {"type there with high bits set", type_with_high_bits, "EPERM"},
#if defined(__x86_64__)
    {"set the I/O privilege level", set_io_level, "EPERM"},
    {"open I/O ports", open_io_ports, "EPERM"},
    {"change its descriptor table", change_descriptor_table, "EPERM"},
    {"make a call as i386", call_as_i386, "SIGSYS"},
    {"make a call as x32", call_as_x32, "SIGSYS|ENOSYS"},
#endif
    {NULL, NULL, NULL},
};
