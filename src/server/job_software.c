#include "server/job_software.h"

#include "market/labels.h"
#include "runtime/launch.h"

/* It asks for machines that have it, or has it come along. A `setup` that reaches the Internet may
 * install whatever it likes. */
static bool brings_it(const struct job_spec *spec, const char *label)
{
    const bool can_install = spec->setup.size > 0 && text_is(spec->resources.network, "open");
    return can_install || spec->resources.image_id.size || job_spec_image(spec) ||
           job_spec_has_packages(spec) ||
           labels_are_in(text_of(label), spec->resources.labels, (struct text){0});
}

struct text job_software_warning(struct arena *arena, const struct core *core,
                                 const struct job_spec *spec, const struct job_request *request)
{
    const struct launch_kind *kind = job_spec_is_command(spec) ? launch_find(spec->runtime) : NULL;
    if (!kind || brings_it(spec, kind->label))
        return (struct text){0};
    const struct core_suiting suiting = core_count_suiting(core, request, text_of(kind->label));
    if (suiting.labelled == suiting.machines)
        return (struct text){0};
    if (suiting.labelled == 0)
        return text_of(arena_format(
            arena,
            "%s that it could have now %s %s (label %s), which runtime %s runs on: bring it as "
            "packages or in an image, or ask for it by resources.labels and wait for one",
            suiting.machines == 1
                ? "the only machine"
                : arena_format(arena, "none of the %zu machines", suiting.machines),
            suiting.machines == 1 ? "lacks" : "has", kind->software, kind->label, kind->name));
    return text_of(arena_format(
        arena,
        "only %zu of the %zu machines that it could have now %s %s (label %s), which runtime %s "
        "runs on: ask for it by resources: {labels: [%s]}",
        suiting.labelled, suiting.machines, suiting.labelled == 1 ? "has" : "have", kind->software,
        kind->label, kind->name, kind->label));
}
