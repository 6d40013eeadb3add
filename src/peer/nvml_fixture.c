/* A driver's library as probe_test.c, gpu_use_test.c and tests/system/test_gpu.py load it: a large
 * GPU, two small ones of unequal memory, and one that has fallen off the bus, or the first
 * NVML_FIXTURE_COUNT of them. The environment says which processes used the large one:
 * "PID:PERCENT,PID:PERCENT" in NVML_FIXTURE_USE, or in the file that it names by its whole path, so
 * that it can change while a program runs; the small ones do not tell. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPU_IS_LOST = 15 };

struct memory {
    unsigned long long total, free, used;
};
struct utilization {
    unsigned gpu, memory;
};

struct sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned multiprocessors, memory, encoder, decoder;
};

static const char *const models[] = {"NVIDIA Large\nGPU", "NVIDIA Small GPU", "NVIDIA Small GPU",
                                     ""};
static char devices[4];

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetName(void *device, char *name, unsigned size);
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *temperature);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization);
int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned *count,
                                    unsigned long long since_us);
int nvmlSystemGetDriverVersion(char *version, unsigned size);
int nvmlSystemGetCudaDriverVersion(int *version);

static long index_of(const void *device)
{
    return (const char *)device - devices;
}

/* As the driver's it may start threads, which must not get its caller's signals. */
int nvmlInit_v2(void)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && sigismember(&blocked, SIGTERM) == 1
               ? SUCCESS
               : GPU_IS_LOST;
}

int nvmlShutdown(void)
{
    return SUCCESS;
}

const char *nvmlErrorString(int result)
{
    return result == SUCCESS ? "Success" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    const char *wanted = getenv("NVML_FIXTURE_COUNT"); // NOLINT(concurrency-mt-unsafe): one thread
    *count = wanted ? (unsigned)strtoul(wanted, NULL, 10) : 4;
    return SUCCESS;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
    *minor = 3 - (unsigned)index_of(device); /* not in the order of the bus */
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &devices[index];
    return index == 3 ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    snprintf(name, size, "%s", models[index_of(device)]);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    memset(memory, 0, sizeof(*memory));
    memory->total = (unsigned long long)(4 - index_of(device)) << 20;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *temperature)
{
    *temperature = 40 + (unsigned)index_of(device);
    return sensor == 0 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *utilization)
{
    utilization->gpu = 5;
    utilization->memory = 1;
    return index_of(device) == 2 ? NOT_SUPPORTED : SUCCESS;
}

static const char *read_use(char *room, size_t size)
{
    const char *use = getenv("NVML_FIXTURE_USE"); // NOLINT(concurrency-mt-unsafe): one thread
    if (!use || *use != '/')
        return use;
    FILE *file = fopen(use, "re");
    if (!file)
        return NULL;
    room[fread(room, 1, size - 1, file)] = '\0';
    fclose(file);
    return room;
}

int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned *count,
                                    unsigned long long since_us)
{
    char room[4096];
    const char *use = read_use(room, sizeof(room));
    if (index_of(device) != 0)
        return NOT_SUPPORTED;
    unsigned found = 0;
    while (use && *use && found < *count) { /* PID:PERCENT,... */
        char *end = NULL;
        const unsigned pid = (unsigned)strtoul(use, &end, 10);
        if (*end != ':')
            break;
        const unsigned percent = (unsigned)strtoul(end + 1, &end, 10);
        samples[found++] =
            (struct sample){.pid = pid, .time_us = since_us + 1000, .multiprocessors = percent};
        use = *end == ',' ? end + 1 : end;
    }
    *count = found;
    return found ? SUCCESS : NOT_FOUND;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    snprintf(version, size, "550.1");
    return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    *version = 12040;
    return SUCCESS;
}
