/*
 * Input: terminals, keyboards and pointers, without reading a single key.
 *
 * A terminal's file has the time of its last read (to 8 seconds: the kernel hides the rest, so it
 * is the change that counts). Keyboards and pointers inside a laptop raise interrupts of their own
 * (i8042, I2C); those on USB are asked for the next report after each one, which their urbnum
 * counts. All of that any user may read.
 */
#include "base/text.h"
#include "peer/watch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NS_PER_MS INT64_C(1000000)

enum { INTERRUPTS_SIZE = 64 << 10 };

/* ---- Terminals ------------------------------------------------------------------------------- */

struct terminals {
    const char *root;
    int64_t atime_ms;
    size_t count;
};

static void see_terminal(void *context, const char *folder, const char *name)
{
    struct terminals *terminals = context;
    const bool is_pts = strcmp(folder, "/dev/pts") == 0;
    /* tty1, ttyS0; not tty itself, which is whoever asks. */
    if (is_pts ? !isdigit((unsigned char)name[0]) : strncmp(name, "tty", 3) != 0 || !name[3])
        return;
    char path[PATH_MAX];
    struct stat status;
    if (snprintf(path, sizeof(path), "%s%s/%s", terminals->root, folder, name) >=
            (int)sizeof(path) ||
        stat(path, &status) < 0)
        return;
    terminals->count++;
    const int64_t atime_ms =
        (int64_t)status.st_atim.tv_sec * 1000 + status.st_atim.tv_nsec / NS_PER_MS;
    if (atime_ms > terminals->atime_ms)
        terminals->atime_ms = atime_ms;
}

/* ---- Keyboards and pointers ------------------------------------------------------------------ */

static bool is_input_interrupt(struct text line)
{
    static const char *const names[] = {"i8042", "i2c_hid", "i2c-hid", "ELAN", "SYNA", "touchpad"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (memmem(line.data, line.size, names[i], strlen(names[i])))
            return true;
    return false;
}

/* "  1:  9  0  IO-APIC  1-edge  i8042": the counts of all processors, added up. */
static uint64_t interrupt_count(const char *root, bool *has_devices)
{
    char *text = malloc(INTERRUPTS_SIZE);
    uint64_t count = 0;
    if (text && watch_read(root, "/proc/interrupts", text, INTERRUPTS_SIZE)) {
        struct text rest = text_of(text), line, label, counts;
        for (bool has_more = rest.size > 0; has_more;) {
            has_more = text_cut(rest, '\n', &line, &rest);
            if (!is_input_interrupt(line) || !text_cut(line, ':', &label, &counts))
                continue;
            *has_devices = true;
            char *end = NULL;
            for (const char *at = counts.data;; at = end) {
                const unsigned long long value = strtoull(at, &end, 10);
                if (end == at)
                    break;
                count += value;
            }
        }
    }
    free(text);
    return count;
}

struct usb {
    const char *root;
    uint64_t count;
    bool has_devices;
};

/* "1-2:1.0" is an interface of the device "1-2"; class 03 with protocol 01 or 02 is a keyboard or a
 * pointer. A device that is both is counted twice, which does no harm. */
static void see_interface(void *context, const char *folder, const char *name)
{
    struct usb *usb = context;
    char path[PATH_MAX], value[16];
    const char *colon = strchr(name, ':');
    if (!colon)
        return;
    snprintf(path, sizeof(path), "%s/%s/bInterfaceClass", folder, name);
    if (!watch_read(usb->root, path, value, sizeof(value)) || strncmp(value, "03", 2) != 0)
        return;
    snprintf(path, sizeof(path), "%s/%s/bInterfaceProtocol", folder, name);
    if (!watch_read(usb->root, path, value, sizeof(value)) ||
        (strncmp(value, "01", 2) != 0 && strncmp(value, "02", 2) != 0))
        return;
    snprintf(path, sizeof(path), "%s/%.*s/urbnum", folder, (int)(colon - name), name);
    const int64_t count = watch_read_number(usb->root, path);
    if (count < 0)
        return;
    usb->has_devices = true;
    usb->count += (uint64_t)count;
}

/* ---- All together ---------------------------------------------------------------------------- */

int64_t watch_input_read(struct watch_input *watch, int64_t now_ns, int64_t utc_ms)
{
    struct terminals terminals = {.root = watch->root};
    watch_each(watch->root, "/dev", see_terminal, &terminals);
    watch_each(watch->root, "/dev/pts", see_terminal, &terminals);
    struct usb usb = {.root = watch->root};
    watch_each(watch->root, "/sys/bus/usb/devices", see_interface, &usb);
    bool has_interrupts = false;
    const uint64_t count = usb.count + interrupt_count(watch->root, &has_interrupts);
    watch->has_terminals = terminals.count > 0;
    watch->has_devices = usb.has_devices || has_interrupts;
    if (!watch->has_terminals && !watch->has_devices)
        return GUARD_UNKNOWN;

    if (!watch->has_read && terminals.count > 0 && terminals.atime_ms <= utc_ms) {
        watch->has_input = true;
        watch->last_ns = now_ns - (utc_ms - terminals.atime_ms) * NS_PER_MS;
    }
    /* A device that was unplugged takes its count with it: that is the owner, too. */
    if (watch->has_read && (terminals.atime_ms > watch->atime_ms || count != watch->count)) {
        watch->has_input = true;
        watch->last_ns = now_ns;
    }
    watch->has_read = true;
    watch->atime_ms = terminals.atime_ms;
    watch->count = count;
    /* Nobody has touched anything since the start: long ago, as far as one can know. */
    return watch->has_input ? (now_ns - watch->last_ns) / NS_PER_MS : INT64_MAX / 2;
}
