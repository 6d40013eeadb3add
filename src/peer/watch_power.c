/* Battery, lid and heat. */
#include "base/text.h"
#include "peer/watch.h"

#include <stdio.h>
#include <string.h>

enum { TEMPERATURE_MILLI_MAX = 150000 }; /* above: a sensor that is not there reads so */

struct reading {
    const char *root;
    struct watch_power *power;
    bool has_mains, is_mains_on, is_discharging;
    int64_t percent_sum, battery_count;
    const char *device; /* hwmon0 */
};

static bool is_word(const char *root, const char *folder, const char *name, const char *file,
                    const char *word)
{
    char path[PATH_MAX], value[32];
    snprintf(path, sizeof(path), "%s/%s/%s", folder, name, file);
    return watch_read(root, path, value, sizeof(value)) &&
           text_equal(text_trim(text_of(value)), text_of(word));
}

static void see_charge(struct reading *reading, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s/capacity", folder, name);
    const int64_t percent = watch_read_number(reading->root, path);
    if (percent < 0 || percent > 100)
        return;
    reading->percent_sum += percent;
    reading->battery_count++;
}

/* A mouse has a battery too, of scope Device. */
static void see_supply(void *context, const char *folder, const char *name)
{
    struct reading *reading = context;
    const char *root = reading->root;
    if (is_word(root, folder, name, "scope", "Device"))
        return;
    if (is_word(root, folder, name, "type", "Battery")) {
        reading->is_discharging |= is_word(root, folder, name, "status", "Discharging");
        see_charge(reading, folder, name);
    } else if (is_word(root, folder, name, "type", "Mains") ||
               is_word(root, folder, name, "type", "USB")) {
        reading->has_mains = true;
        reading->is_mains_on |= is_word(root, folder, name, "online", "1");
    } else {
        return;
    }
    if (reading->power->is_on_battery == GUARD_UNKNOWN)
        reading->power->is_on_battery = 0;
}

static void see_lid(void *context, const char *folder, const char *name)
{
    struct reading *reading = context;
    char path[PATH_MAX], value[64];
    snprintf(path, sizeof(path), "%s/%s/state", folder, name);
    if (watch_read(reading->root, path, value, sizeof(value)))
        reading->power->is_lid_closed = strstr(value, "closed") != NULL;
}

static void see_temperature(struct reading *reading, const char *path)
{
    const int64_t temperature = watch_read_number(reading->root, path);
    if (temperature > reading->power->temperature_milli && temperature < TEMPERATURE_MILLI_MAX)
        reading->power->temperature_milli = temperature;
}

static void see_zone(void *context, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s/temp", folder, name);
    if (strncmp(name, "thermal_zone", 12) == 0)
        see_temperature(context, path);
}

static void see_sensor(void *context, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (strncmp(name, "temp", 4) == 0 && text_ends_with(text_of(name), TEXT("_input")))
        see_temperature(context, path);
}

/* Of the processors only: a disk or a radio has limits of its own. */
static void see_monitor(void *context, const char *folder, const char *name)
{
    struct reading *reading = context;
    static const char *const drivers[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
    for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++) {
        if (!is_word(reading->root, folder, name, "name", drivers[i]))
            continue;
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        watch_each(reading->root, path, see_sensor, reading);
    }
}

void watch_power_read(const char *root, struct watch_power *out_power)
{
    *out_power = (struct watch_power){GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN};
    struct reading reading = {.root = root, .power = out_power};
    watch_each(root, "/sys/class/power_supply", see_supply, &reading);
    if (reading.is_discharging && !(reading.has_mains && reading.is_mains_on))
        out_power->is_on_battery = 1;
    if (reading.battery_count > 0)
        out_power->battery_percent = reading.percent_sum / reading.battery_count;
    watch_each(root, "/proc/acpi/button/lid", see_lid, &reading);
    watch_each(root, "/sys/class/thermal", see_zone, &reading);
    watch_each(root, "/sys/class/hwmon", see_monitor, &reading);
}
