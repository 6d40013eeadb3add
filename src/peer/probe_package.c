#include "peer/probe_package.h"

#include "base/scope.h"
#include "peer/watch.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORD_SIZE_MAX = 40, STATUS_LINE_SIZE = 512 };

/* ---- Labels -----------------------------------------------------------------------------------
 */

void labels_probe_init(struct labels_probe *labels, const char *const *hidden, size_t hidden_count)
{
    *labels = (struct labels_probe){.hidden = hidden, .hidden_count = hidden_count};
}

bool labels_probe_is_word(struct text word)
{
    for (size_t i = 0; i < word.size; i++)
        if (!isalnum((unsigned char)word.data[i]) && !strchr("._+-", word.data[i]))
            return false;
    return word.size > 0 && word.size <= WORD_SIZE_MAX;
}

bool labels_probe_has(const struct labels_probe *labels, struct text word)
{
    struct text rest = {labels->text, labels->size}, next;
    for (bool has_more = rest.size > 0; has_more;) {
        has_more = text_cut(rest, ',', &next, &rest);
        if (text_equal(next, word))
            return true;
    }
    return false;
}

void labels_probe_add(struct labels_probe *labels, struct text word)
{
    for (size_t i = 0; i < labels->hidden_count; i++)
        if (text_equal(word, text_of(labels->hidden[i])))
            return;
    if (!labels_probe_is_word(word) || labels_probe_has(labels, word))
        return;
    const size_t comma = labels->size > 0;
    if (labels->size + comma + word.size >= sizeof(labels->text)) {
        labels->left_out++;
        return;
    }
    if (comma)
        labels->text[labels->size++] = ',';
    memcpy(labels->text + labels->size, word.data, word.size);
    labels->size += word.size;
    labels->text[labels->size] = '\0';
}

/* ---- What is looked for -----------------------------------------------------------------------
 */

/*
 * To add one: a line here, the most wished for first. `package` is Debian's name, `file` a program
 * or file of any system, `module` the folder of a Python package. Any of them will do.
 */
static const struct known_package {
    const char *label;
    const char *package;
    const char *file;
    const char *module;
} known_packages[] = {
    {"python3", "python3", "/usr/bin/python3", NULL},
    {"python3-torch", "python3-torch", NULL, "torch"},
    {"python3-tensorflow", NULL, NULL, "tensorflow"},
    {"python3-jax", NULL, NULL, "jax"},
    {"python3-numpy", "python3-numpy", NULL, "numpy"},
    {"python3-scipy", "python3-scipy", NULL, "scipy"},
    {"python3-sklearn", "python3-sklearn", NULL, "sklearn"},
    {"python3-pandas", "python3-pandas", NULL, "pandas"},
    {"python3-transformers", NULL, NULL, "transformers"},
    {"openmpi", "openmpi-bin", "/usr/bin/mpirun.openmpi", NULL},
    {"spark", NULL, "/opt/spark/bin/spark-submit", "pyspark"},
    {"java-21", "openjdk-21-jre-headless", "/usr/lib/jvm/java-21-openjdk/bin/java", NULL},
    {"java-17", "openjdk-17-jre-headless", "/usr/lib/jvm/java-17-openjdk/bin/java", NULL},
    {"java-11", "openjdk-11-jre-headless", "/usr/lib/jvm/java-11-openjdk/bin/java", NULL},
    {"cuda-toolkit", "nvidia-cuda-toolkit", "/usr/local/cuda/bin/nvcc", NULL},
    {"runc", "runc", "/usr/bin/runc", NULL},
    {"podman", "podman", "/usr/bin/podman", NULL},
    {"gcc", "gcc", "/usr/bin/gcc", NULL},
};

enum { KNOWN_COUNT = sizeof(known_packages) / sizeof(*known_packages) };

/* Where Python's packages are for every user: Debian's, pip's, and Fedora's. */
static const char *const python_parents[] = {"/usr/lib", "/usr/local/lib", "/usr/lib64",
                                             "/usr/local/lib64"};
static const char *const python_children[] = {"dist-packages", "site-packages"};

struct search {
    const char *root;
    bool is_found[KNOWN_COUNT];
};

static bool exists(const char *root, const char *path)
{
    char full[PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", root, path);
    return access(full, F_OK) == 0;
}

/* ---- Debian's list: paragraphs of "Package: x" and "Status: install ok installed" --------------
 */

static void take_package(struct search *search, const char *package)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (known_packages[i].package && !strcmp(known_packages[i].package, package))
            search->is_found[i] = true;
}

static void search_dpkg(struct search *search)
{
    char path[PATH_MAX], line[STATUS_LINE_SIZE], package[STATUS_LINE_SIZE] = "";
    snprintf(path, sizeof(path), "%s/var/lib/dpkg/status", search->root);
    AUTO_FILE FILE *file = fopen(path, "re");
    bool is_continued = false; /* the rest of a line longer than ours */
    while (file && fgets(line, sizeof(line), file)) {
        const size_t size = strlen(line);
        const bool is_start = !is_continued;
        is_continued = size > 0 && line[size - 1] != '\n';
        line[strcspn(line, "\n")] = '\0';
        if (!is_start)
            continue;
        if (!strncmp(line, "Package: ", 9))
            snprintf(package, sizeof(package), "%.*s", (int)sizeof(package) - 10, line + 9);
        else if (!strcmp(line, "Status: install ok installed"))
            take_package(search, package);
    }
}

/* ---- Python's folders -------------------------------------------------------------------------
 */

static void search_modules(struct search *search, const char *folder)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        char path[PATH_MAX];
        if (!known_packages[i].module || search->is_found[i])
            continue;
        if (snprintf(path, sizeof(path), "%s/%s/__init__.py", folder, known_packages[i].module) <
            (int)sizeof(path))
            search->is_found[i] = exists(search->root, path);
    }
}

static void take_python(void *context, const char *parent, const char *name)
{
    char folder[PATH_MAX];
    if (strncmp(name, "python3", 7) != 0)
        return;
    for (size_t i = 0; i < sizeof(python_children) / sizeof(*python_children); i++) {
        snprintf(folder, sizeof(folder), "%s/%s/%s", parent, name, python_children[i]);
        search_modules(context, folder);
    }
}

void packages_probe_read(const char *root, struct labels_probe *labels)
{
    struct search search = {.root = root};
    search_dpkg(&search);
    for (size_t i = 0; i < sizeof(python_parents) / sizeof(*python_parents); i++)
        watch_each(root, python_parents[i], take_python, &search);
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (search.is_found[i] || (known_packages[i].file && exists(root, known_packages[i].file)))
            labels_probe_add(labels, text_of(known_packages[i].label));
}

/* ---- Has anything changed? --------------------------------------------------------------------
 */

/* FNV-1a: a change is noticed, not proven. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(1099511628211);
}

struct fingerprint {
    uint64_t hash;
    const char *root;
};

static void mix_path(struct fingerprint *fingerprint, const char *path)
{
    char full[PATH_MAX];
    struct stat status;
    snprintf(full, sizeof(full), "%s%s", fingerprint->root, path);
    const bool is_there = stat(full, &status) == 0;
    fingerprint->hash = mix_number(fingerprint->hash, is_there);
    if (!is_there)
        return;
    fingerprint->hash = mix_number(fingerprint->hash, (uint64_t)status.st_mtim.tv_sec);
    fingerprint->hash = mix_number(fingerprint->hash, (uint64_t)status.st_ino);
}

/* Folders have no order: each name counts for itself. */
static void mix_name(void *context, const char *parent, const char *name)
{
    struct fingerprint *fingerprint = context;
    (void)parent;
    fingerprint->hash += mix(UINT64_C(14695981039346656037), name, strlen(name));
}

static void mix_python(void *context, const char *parent, const char *name)
{
    struct fingerprint *fingerprint = context;
    char folder[PATH_MAX];
    (void)parent;
    if (strncmp(name, "python3", 7) != 0)
        return;
    for (size_t p = 0; p < sizeof(python_parents) / sizeof(*python_parents); p++)
        for (size_t c = 0; c < sizeof(python_children) / sizeof(*python_children); c++) {
            snprintf(folder, sizeof(folder), "%s/%.64s/%s", python_parents[p], name,
                     python_children[c]);
            mix_path(fingerprint, folder);
        }
}

uint64_t probe_fingerprint(const char *root)
{
    struct fingerprint fingerprint = {.hash = UINT64_C(14695981039346656037), .root = root};
    char online[128] = "";
    cpu_set_t cores = {0};
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        fingerprint.hash = mix(fingerprint.hash, &cores, sizeof(cores));
    if (watch_read(root, "/sys/devices/system/cpu/online", online, sizeof(online)))
        fingerprint.hash = mix(fingerprint.hash, online, strlen(online));
    mix_path(&fingerprint, "/var/lib/dpkg/status");
    mix_path(&fingerprint, "/var/lib/rpm/rpmdb.sqlite");
    mix_path(&fingerprint, "/opt");
    watch_each(root, "/usr/lib", mix_python, &fingerprint);
    watch_each(root, "/usr/local/lib", mix_python, &fingerprint);
    watch_each(root, "/sys/class/power_supply", mix_name, &fingerprint);
    watch_each(root, "/proc/driver/nvidia/gpus", mix_name, &fingerprint);
    return fingerprint.hash;
}
