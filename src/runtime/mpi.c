/*
 * Runtime mpi: Open MPI 4 over the job's network. The script, which calls mpirun, runs on the first
 * rank alone; mpirun starts its daemons on the others through a launcher in place of ssh.
 *
 * Variables OMPI_MCA_name=value are mpirun's --mca name value; orted --help and ompi_info name
 * them.
 */
#include "base/buffer.h"
#include "runtime/launch.h"
#include "runtime/muster_message.h"

#include <inttypes.h>

#define HOSTFILE "hostfile"
#define LAUNCHER "launcher"

enum { HOSTFILE_SIZE_MAX = 64 << 10 };

static struct text write_hostfile(struct arena *arena, const struct launch_round *round)
{
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, HOSTFILE_SIZE_MAX);
    for (size_t i = 0; i < round->member_count; i++) {
        const struct launch_member *member = &round->members[i];
        char address[LAUNCH_ADDRESS_SIZE];
        const int64_t cores = member->cores_milli / 1000;
        buffer_append_format(&text, "%s slots=%" PRId64 "\n",
                             launch_address(member->address, address), cores > 0 ? cores : 1);
    }
    return arena_copy_text(arena, buffer_text(&text));
}

static void mpi_write(struct arena *arena, const struct launch_round *round, struct launch *out)
{
    launch_add(out, arena, "OMPI_MCA_oob_tcp_if_include=%s", LAUNCH_INTERFACE);
    launch_add(out, arena, "OMPI_MCA_btl_tcp_if_include=%s", LAUNCH_INTERFACE);
    launch_add(out, arena, "OMPI_MCA_pml=ob1");
    launch_add(out, arena, "OMPI_MCA_btl=self,vader,tcp");
    /* The sandbox lets no process read another's memory. */
    launch_add(out, arena, "OMPI_MCA_btl_vader_single_copy_mechanism=none");
    /* Cores are a share of the machine's time, not some of its CPUs. */
    launch_add(out, arena, "OMPI_MCA_hwloc_base_binding_policy=none");
    launch_add(out, arena, "OMPI_MCA_orte_default_hostfile=%s/" HOSTFILE, round->folder);
    launch_add(out, arena, "OMPI_MCA_plm_rsh_agent=%s/" LAUNCHER, round->folder);
    launch_add(out, arena, "OMPI_MCA_plm_rsh_no_tree_spawn=1"); /* only the first rank launches */
    /* A daemon stays the launcher's: what it says is logged, and its end is seen. */
    launch_add(out, arena, "OMPI_MCA_orte_leave_session_attached=1");
    out->runs_script = round->own == 0;
    if (out->runs_script)
        launch_add(out, arena, MUSTER_SECRET_NAME "=%s", round->secret);
    /* The daemons get mpirun's settings, and want to find what those name. */
    out->files[out->file_count++] =
        (struct launch_file){.name = HOSTFILE, .content = write_hostfile(arena, round)};
    out->files[out->file_count++] = (struct launch_file){
        .name = LAUNCHER,
        .content =
            text_of(arena_format(arena, "#!/bin/sh\nexec %s rank-launch \"$@\"\n", round->program)),
        .is_program = true};
}

const struct launch_kind launch_mpi = {
    .name = "mpi", .label = "openmpi", .software = "mpirun", .is_led = true, .write = mpi_write};
