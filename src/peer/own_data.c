#include "peer/own_data.h"

#include "peer/probe_package.h"
#include "runtime/job_spec.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct text own_data_label(const char *item)
{
    struct text label = text_of(item), path;
    text_cut(text_of(item), '=', &label, &path);
    return label;
}

const char *own_data_path(const char *const *items, size_t count, struct text label)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(own_data_label(items[i]), label))
            return items[i] + label.size + 1;
    return NULL;
}

static int check_path(const char *path, struct error *error)
{
    struct stat status;
    if (path[0] != '/')
        return error_set(error, ERROR_INVALID, "\"%s\" is no whole path: begin with /", path);
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "\"%s\"", path);
    const bool is_folder = S_ISDIR(status.st_mode);
    if (!is_folder && !S_ISREG(status.st_mode))
        return error_set(error, ERROR_INVALID, "\"%s\" is neither a file nor a folder", path);
    const mode_t needed = is_folder ? S_IROTH | S_IXOTH : S_IROTH;
    if ((status.st_mode & needed) != needed)
        return error_set(error, ERROR_REFUSED,
                         "\"%s\" cannot be read by everybody, and leases run as nobody: chmod %s",
                         path, is_folder ? "o+rX" : "o+r");
    return 0;
}

int own_data_check(const char *const *items, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct text label = own_data_label(items[i]);
        if (label.size == strlen(items[i]) || !labels_probe_is_word(label) ||
            label.size > JOB_PEER_LABEL_SIZE_MAX)
            return error_set(error, ERROR_INVALID,
                             "\"%.80s\" is not LABEL=PATH, with a label of letters, digits and "
                             ". _ + -, %d at most",
                             items[i], JOB_PEER_LABEL_SIZE_MAX);
        if (own_data_path(items, i, label))
            return error_set(error, ERROR_INVALID, "label \"" TEXT_FORMAT "\" is there twice",
                             TEXT_ARGS(label));
        if (check_path(items[i] + label.size + 1, error) < 0)
            return -1;
    }
    return 0;
}
