#include "tensor/onednn_step.h"

#include "base/assert.h"
#include "tensor/kernel_internal.h"

#include <stdlib.h>
#include <string.h>

void step_done(struct step *step)
{
    const struct onednn_library *library = step->library;
    for (uint32_t i = 0; i < step->port_count; i++) {
        struct port *port = &step->ports[i];
        if (port->reorder)
            library->dnnl_primitive_destroy(port->reorder);
        if (port->inner && port->inner != port->outer)
            library->dnnl_memory_destroy(port->inner);
        if (port->outer)
            library->dnnl_memory_destroy(port->outer);
        free(port->inner_data);
    }
    if (step->primitive)
        library->dnnl_primitive_destroy(step->primitive);
    if (step->descriptor)
        library->dnnl_primitive_desc_destroy(step->descriptor);
    memset(step, 0, sizeof(*step));
}

const char *step_implementation(const struct step *step)
{
    const char *name = NULL;
    const dnnl_status_t status = step->library->dnnl_primitive_desc_query(
        step->descriptor, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success && name ? name : "unknown";
}

int step_init(struct step *step, const struct onednn_library *library, const void *operation,
              const struct step *hint, struct error *error)
{
    step->library = library;
    if (library->dnnl_primitive_desc_create(&step->descriptor, operation, NULL, library->engine,
                                            hint ? hint->descriptor : NULL) != dnnl_success ||
        library->dnnl_primitive_create(&step->primitive, step->descriptor) != dnnl_success)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN has no way to compute this shape");
    if (strncmp(step_implementation(step), "ref", 3) == 0)
        return error_set(error, ERROR_UNAVAILABLE,
                         "oneDNN has only its slow reference for this shape");
    return 0;
}

static int reorder_open(const struct step *step, const dnnl_memory_desc_t *from,
                        const dnnl_memory_desc_t *to, dnnl_primitive_t *out_reorder)
{
    const struct onednn_library *library = step->library;
    dnnl_primitive_desc_t descriptor = NULL;
    if (library->dnnl_reorder_primitive_desc_create(&descriptor, from, library->engine, to,
                                                    library->engine, NULL) != dnnl_success)
        return -1;
    const dnnl_status_t status = library->dnnl_primitive_create(out_reorder, descriptor);
    library->dnnl_primitive_desc_destroy(descriptor);
    return status == dnnl_success ? 0 : -1;
}

int step_add_port(struct step *step, int argument, dnnl_query_t query,
                  const dnnl_memory_desc_t *plain, struct error *error)
{
    ASSERT(step->port_count < PORTS_MAX);
    const struct onednn_library *library = step->library;
    const dnnl_memory_desc_t *inner =
        library->dnnl_primitive_desc_query_md(step->descriptor, query, 0);
    struct port *port = &step->ports[step->port_count++];
    *port =
        (struct port){.argument = argument,
                      .is_output = query == dnnl_query_dst_md || query == dnnl_query_diff_src_md ||
                                   query == dnnl_query_diff_weights_md};
    if (library->dnnl_memory_create(&port->outer, plain, library->engine, DNNL_MEMORY_NONE) !=
        dnnl_success)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN refuses a memory");
    if (library->dnnl_memory_desc_equal(inner, plain)) {
        port->inner = port->outer;
        return 0;
    }
    port->inner_data = kernel_alloc(library->dnnl_memory_desc_get_size(inner));
    if (library->dnnl_memory_create(&port->inner, inner, library->engine, port->inner_data) !=
            dnnl_success ||
        reorder_open(step, port->is_output ? inner : plain, port->is_output ? plain : inner,
                     &port->reorder) < 0)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN cannot reorder this shape");
    return 0;
}

int step_add_bias(struct step *step, int argument, const dnnl_memory_desc_t *plain,
                  struct error *error)
{
    ASSERT(step->port_count < PORTS_MAX);
    struct port *port = &step->ports[step->port_count++];
    *port = (struct port){.argument = argument};
    if (step->library->dnnl_memory_create(&port->outer, plain, step->library->engine,
                                          DNNL_MEMORY_NONE) != dnnl_success)
        return error_set(error, ERROR_UNAVAILABLE, "oneDNN refuses a memory");
    port->inner = port->outer;
    return 0;
}

static void execute(const struct onednn_library *library, dnnl_primitive_t primitive,
                    const dnnl_exec_arg_t *arguments, int count)
{
    const dnnl_status_t status =
        library->dnnl_primitive_execute(primitive, library->stream, count, arguments);
    ASSERT(status == dnnl_success);
}

static void port_reorder(const struct step *step, const struct port *port)
{
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_FROM, port->is_output ? port->inner : port->outer},
        {DNNL_ARG_TO, port->is_output ? port->outer : port->inner},
    };
    execute(step->library, port->reorder, arguments, 2);
}

void step_run(const struct step *step, const void *const data[], dnnl_memory_t workspace)
{
    dnnl_exec_arg_t arguments[PORTS_MAX + 1];
    int count = 0;
    for (uint32_t i = 0; i < step->port_count; i++) {
        const struct port *port = &step->ports[i];
        void *handle;
        memcpy(&handle, &data[i], sizeof(handle)); /* the C API takes inputs without const */
        step->library->dnnl_memory_set_data_handle(port->outer, handle);
        if (port->reorder && !port->is_output)
            port_reorder(step, port);
        arguments[count++] = (dnnl_exec_arg_t){port->argument, port->inner};
    }
    if (workspace)
        arguments[count++] = (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, workspace};
    execute(step->library, step->primitive, arguments, count);
    for (uint32_t i = 0; i < step->port_count; i++)
        if (step->ports[i].reorder && step->ports[i].is_output)
            port_reorder(step, &step->ports[i]);
}

dnnl_memory_desc_t onednn_descriptor(const struct onednn_library *library, int rank,
                                     const dnnl_dim_t *sizes, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t descriptor;
    const dnnl_status_t status =
        library->dnnl_memory_desc_init_by_tag(&descriptor, rank, sizes, dnnl_f32, tag);
    ASSERT(status == dnnl_success);
    return descriptor;
}
