/*
 * Watches against the files of other machines.
 *
 * covers watch_cpu.c, watch_gpu.c, watch_input.c, watch_memory.c, watch_power.c
 */
#include "base/error.h"
#include "base/scope.h"
#include "peer/watch.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/souk-watch-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    struct error error;
    return folder_remove(root, &error);
}

/* A file of the kernel's as another machine has it. */
static void put(const char *path, const char *content)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    AUTO_FILE FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
}

static void put_stat(int user_ticks, int idle_ticks)
{
    char line[256];
    snprintf(line, sizeof(line), "cpu  %d 10 20 %d 5000 3 4 77 0 0\ncpu0 1 2 3 4\n", user_ticks,
             idle_ticks);
    put("/proc/stat", line);
}

TEST(a_machine_without_anything_says_that_it_does_not_know)
{
    struct watch_cpu cpu = {.root = root};
    struct watch_memory memory = {.root = root};
    struct watch_input input = {.root = root};
    struct watch_power power;
    int64_t free_bytes, stall_milli;
    assert_int_equal(watch_cpu_read(&cpu, 0, 1), GUARD_UNKNOWN);
    watch_memory_read(&memory, 1, &free_bytes, &stall_milli);
    assert_int_equal(free_bytes, GUARD_UNKNOWN);
    assert_int_equal(stall_milli, GUARD_UNKNOWN);
    assert_int_equal(watch_memory_open_trigger(root), -1);
    assert_int_equal(watch_input_read(&input, 1, 1), GUARD_UNKNOWN);
    watch_power_read(root, &power);
    assert_int_equal(power.is_on_battery, GUARD_UNKNOWN);
    assert_int_equal(power.battery_percent, GUARD_UNKNOWN);
    assert_int_equal(power.is_lid_closed, GUARD_UNKNOWN);
    assert_int_equal(power.temperature_milli, GUARD_UNKNOWN);
    assert_int_equal(watch_gpu_read(root), GUARD_UNKNOWN);
}

TEST(cpu_is_what_others_used_since_the_last_look)
{
    struct watch_cpu watch = {.root = root};
    put_stat(1000, 1000);
    assert_int_equal(watch_cpu_read(&watch, 500, 1000 * MS), GUARD_UNKNOWN);
    put_stat(1060, 9000); /* 600 ms in half a second, 100 of them ours */
    assert_int_equal(watch_cpu_read(&watch, 600, 1500 * MS), 1000);
    assert_int_equal(watch_cpu_read(&watch, 600, 1550 * MS), 1000); /* too soon: as before */
    put_stat(1070, 9000); /* more ours than ticks were counted */
    assert_int_equal(watch_cpu_read(&watch, 900, 2000 * MS), 0);
    put_stat(1170, 9000); /* a lease has ended with its time: nothing can be said */
    assert_int_equal(watch_cpu_read(&watch, 100, 2500 * MS), 0);
    put_stat(1190, 9000);
    assert_int_equal(watch_cpu_read(&watch, 100, 3000 * MS), 400);
}

TEST(memory_is_free_bytes_and_the_share_of_time_waited)
{
    struct watch_memory watch = {.root = root};
    int64_t free_bytes, stall_milli;
    put("/proc/meminfo", "MemTotal: 100 kB\nMemFree: 5 kB\nMemAvailable:   2048 kB\n");
    put("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n"
                                 "full avg10=0.00 avg60=0.00 avg300=0.00 total=900\n");
    watch_memory_read(&watch, 1000 * MS, &free_bytes, &stall_milli);
    assert_int_equal(free_bytes, 2048 << 10);
    assert_int_equal(stall_milli, 0);
    put("/proc/pressure/memory", "some avg10=9.00 avg60=0.00 avg300=0.00 total=51000\n");
    watch_memory_read(&watch, 1200 * MS, &free_bytes, &stall_milli);
    assert_int_equal(stall_milli, 250);
}

TEST(this_kernel_takes_the_trigger_or_has_no_pressure)
{
    AUTO_FD int fd = watch_memory_open_trigger("");
    if (access("/proc/pressure/memory", W_OK) == 0)
        assert_true(fd >= 0);
    if (fd >= 0) {
        struct pollfd wait = {.fd = fd, .events = POLLPRI};
        assert_true(poll(&wait, 1, 0) >= 0);
        assert_false(wait.revents & POLLERR);
    }
}

static void touch(const char *path, int64_t atime_s)
{
    char whole[PATH_MAX];
    put(path, "");
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    const struct timespec times[2] = {{.tv_sec = atime_s}, {.tv_sec = atime_s}};
    assert_int_equal(utimensat(AT_FDCWD, whole, times, 0), 0);
}

TEST(a_terminal_that_is_typed_at_is_input)
{
    struct watch_input watch = {.root = root};
    touch("/dev/pts/3", 1000);
    touch("/dev/pts/ptmx", 1999); /* opened by whoever makes a terminal: no input */
    touch("/dev/tty", 1999);
    touch("/dev/tty2", 900);
    assert_int_equal(watch_input_read(&watch, 5000000 * MS, 1600000), 600000);
    assert_int_equal(watch_input_read(&watch, 5001000 * MS, 1601000), 601000);
    touch("/dev/tty2", 1600);
    assert_int_equal(watch_input_read(&watch, 5002000 * MS, 1602000), 0);
    assert_int_equal(watch_input_read(&watch, 5003000 * MS, 1603000), 1000);
    assert_true(watch.has_terminals);
    assert_false(watch.has_devices);
}

TEST(keyboards_and_pointers_count)
{
    struct watch_input watch = {.root = root};
    put("/proc/interrupts", "           CPU0       CPU1\n"
                            "  1:          7         10   IO-APIC    1-edge      i8042\n"
                            " 24:     999999     888888   PCI-MSI 512-edge      nvme0q0\n");
    put("/sys/bus/usb/devices/1-2:1.0/bInterfaceClass", "03\n");
    put("/sys/bus/usb/devices/1-2:1.0/bInterfaceProtocol", "02\n");
    put("/sys/bus/usb/devices/1-2/urbnum", "40\n");
    put("/sys/bus/usb/devices/1-3:1.0/bInterfaceClass", "08\n"); /* a disk */
    put("/sys/bus/usb/devices/1-3/urbnum", "70\n");
    assert_true(watch_input_read(&watch, 1000 * MS, 0) > 3600000);
    assert_true(watch.has_devices);
    put("/sys/bus/usb/devices/1-3/urbnum", "90\n");
    put("/proc/interrupts", "           CPU0       CPU1\n"
                            "  1:          7         10   IO-APIC    1-edge      i8042\n"
                            " 24:     999999     999999   PCI-MSI 512-edge      nvme0q0\n");
    assert_true(watch_input_read(&watch, 1200 * MS, 0) > 3600000);
    put("/sys/bus/usb/devices/1-2/urbnum", "41\n");
    assert_int_equal(watch_input_read(&watch, 1400 * MS, 0), 0);
    put("/proc/interrupts", "  1:          8         10   IO-APIC    1-edge      i8042\n");
    assert_int_equal(watch_input_read(&watch, 1600 * MS, 0), 0);
    assert_int_equal(watch_input_read(&watch, 1800 * MS, 0), 200);
}

TEST(battery_and_lid_of_a_laptop)
{
    struct watch_power power;
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "1\n");
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/BAT0/status", "Charging\n");
    put("/sys/class/power_supply/BAT0/capacity", "77\n");
    put("/sys/class/power_supply/mouse/type", "Battery\n");
    put("/sys/class/power_supply/mouse/scope", "Device\n");
    put("/sys/class/power_supply/mouse/status", "Discharging\n");
    put("/proc/acpi/button/lid/LID0/state", "state:      open\n");
    watch_power_read(root, &power);
    assert_int_equal(power.is_on_battery, 0);
    assert_int_equal(power.battery_percent, 77);
    assert_int_equal(power.is_lid_closed, 0);
    put("/sys/class/power_supply/AC/online", "0\n");
    put("/sys/class/power_supply/BAT0/status", "Discharging\n");
    put("/proc/acpi/button/lid/LID0/state", "state:      closed\n");
    watch_power_read(root, &power);
    assert_int_equal(power.is_on_battery, 1);
    assert_int_equal(power.is_lid_closed, 1);
    /* A weak charger: the battery shrinks, but the plug is in. */
    put("/sys/class/power_supply/AC/online", "1\n");
    watch_power_read(root, &power);
    assert_int_equal(power.is_on_battery, 0);
}

TEST(heat_is_of_the_hottest_processor_sensor)
{
    struct watch_power power;
    put("/sys/class/thermal/thermal_zone0/temp", "47000\n");
    put("/sys/class/thermal/thermal_zone1/temp", "-274000\n");
    put("/sys/class/thermal/cooling_device0/temp", "99000\n");
    put("/sys/class/hwmon/hwmon1/name", "coretemp\n");
    put("/sys/class/hwmon/hwmon1/temp2_input", "68000\n");
    put("/sys/class/hwmon/hwmon1/temp2_max", "100000\n");
    put("/sys/class/hwmon/hwmon2/name", "nvme\n");
    put("/sys/class/hwmon/hwmon2/temp1_input", "80000\n");
    watch_power_read(root, &power);
    assert_int_equal(power.temperature_milli, 68000);
}

TEST(load_on_an_amd_gpu)
{
    put("/sys/class/drm/card0/device/gpu_busy_percent", "12\n");
    put("/sys/class/drm/card1/device/gpu_busy_percent", "37\n");
    put("/sys/class/drm/card1-HDMI-A-1/device/gpu_busy_percent", "99\n");
    assert_int_equal(watch_gpu_read(root), 370);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WITH_ROOT(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
        WITH_ROOT(a_machine_without_anything_says_that_it_does_not_know),
        WITH_ROOT(cpu_is_what_others_used_since_the_last_look),
        WITH_ROOT(memory_is_free_bytes_and_the_share_of_time_waited),
        WITH_ROOT(this_kernel_takes_the_trigger_or_has_no_pressure),
        WITH_ROOT(a_terminal_that_is_typed_at_is_input),
        WITH_ROOT(keyboards_and_pointers_count),
        WITH_ROOT(battery_and_lid_of_a_laptop),
        WITH_ROOT(heat_is_of_the_hottest_processor_sensor),
        WITH_ROOT(load_on_an_amd_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
