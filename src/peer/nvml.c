#include "peer/nvml.h"

#include "base/assert.h"
#include "base/library.h"

#include <pthread.h>
#include <signal.h>

static const char *const names[] = {
    "nvmlInit_v2",
    "nvmlShutdown",
    "nvmlErrorString",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetName",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetProcessUtilization",
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetCudaDriverVersion",
};
_Static_assert(sizeof(names) / sizeof(*names) == sizeof(struct nvml) / sizeof(void *),
               "a name for each function");

int nvml_load(const char *file, struct nvml *out_nvml, struct error *error)
{
    union {
        struct nvml nvml;
        void *functions[sizeof(struct nvml) / sizeof(void *)];
    } loaded;
    if (library_load(file ? file : "libnvidia-ml.so.1", names, sizeof(names) / sizeof(*names),
                     loaded.functions, error) < 0)
        return -1;
    *out_nvml = loaded.nvml;
    return 0;
}

/* Threads that the driver's library starts would take the signals that end a daemon, and with them
 * its life: they are to inherit that they get none. */
int nvml_start(const struct nvml *nvml)
{
    sigset_t all, before;
    sigfillset(&all);
    ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    const int result = nvml->init();
    ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return result;
}
