#include "tensor/onednn_library.h"

#include "base/assert.h"
#include "tensor/kernel_internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* dlsym yields a void pointer, which ISO C does not convert to a function's; POSIX says copy it. */
static bool load_symbol(void *handle, const char *name, void *out_function)
{
    void *symbol = handle ? dlsym(handle, name) : NULL;
    memcpy(out_function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/* A library whose threads cannot be held to one is not used at all. */
static bool set_one_thread(void *handle, const char *setter_name)
{
    void (*set_thread_count)(int) = NULL;
    if (!load_symbol(handle, setter_name, &set_thread_count))
        return false;
    set_thread_count(1);
    return true;
}

static void load_blas(struct onednn_library *library)
{
    library->blas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!set_one_thread(library->blas, "openblas_set_num_threads") ||
        !load_symbol(library->blas, "cblas_sgemm", &library->blas_sgemm))
        library->blas_sgemm = NULL;
}

static int load_onednn(struct onednn_library *library, struct error *error)
{
    library->openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!set_one_thread(library->openmp, "omp_set_num_threads"))
        return error_set(error, ERROR_UNAVAILABLE, "libgomp cannot be opened: install libgomp1");
    library->onednn = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library->onednn)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN cannot be opened: install libdnnl2 (%s)",
                         dlerror()); /* NOLINT(concurrency-mt-unsafe): safe in glibc */
#define X(name)                                                                                    \
    if (!load_symbol(library->onednn, #name, &library->name))                                      \
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN has no \"%s\": version 2 is needed",    \
                         #name);
    ONEDNN_FUNCTIONS(X)
#undef X
    return 0;
}

int onednn_library_open(struct onednn_library **out_library, struct error *error)
{
    AUTO(onednn_library) struct onednn_library *library = kernel_alloc(sizeof(*library));
    if (load_onednn(library, error) < 0)
        return -1;
    load_blas(library);
    if (library->dnnl_engine_create(&library->engine, dnnl_cpu, 0) != dnnl_success ||
        library->dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags) !=
            dnnl_success)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN finds no processor it can use");
    *out_library = TAKE(library);
    return 0;
}

void onednn_library_free(struct onednn_library *library)
{
    if (!library)
        return;
    if (library->stream)
        library->dnnl_stream_destroy(library->stream);
    if (library->engine)
        library->dnnl_engine_destroy(library->engine);
    /* Not dlclose: OpenMP and OpenBLAS leave threads and exit handlers that point into them. */
    free(library);
}

void onednn_library_gemm(const struct onednn_library *library, const struct gemm *g)
{
    /* Measured: at up to a million products OpenBLAS skips its packing and is up to 6 x faster;
     * above, oneDNN's generated code is 1.3 to 1.6 x faster. */
    const size_t small_max = 1000000;
    enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 }; /* from cblas.h */
    const uint32_t lda = gemm_lda(g), ldb = gemm_ldb(g), ldc = gemm_ldc(g);
    if (library->blas_sgemm && (size_t)g->m * g->n * g->k <= small_max) {
        library->blas_sgemm(ROW_MAJOR, g->is_a_transposed ? TRANSPOSED : AS_IS,
                            g->is_b_transposed ? TRANSPOSED : AS_IS, (int)g->m, (int)g->n,
                            (int)g->k, 1, g->a, (int)lda, g->b, (int)ldb, g->beta, g->c, (int)ldc);
        return;
    }
    const dnnl_status_t status =
        library->dnnl_sgemm(g->is_a_transposed ? 'T' : 'N', g->is_b_transposed ? 'T' : 'N', g->m,
                            g->n, g->k, 1, g->a, lda, g->b, ldb, g->beta, g->c, ldc);
    ASSERT(status == dnnl_success);
}
