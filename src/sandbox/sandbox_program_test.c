/*
 * Real programs in real sandboxes: what the allow-list, Landlock and the small /etc must leave
 * them.
 *
 * covers launch_command.c, seccomp_calls.c, stage.c
 *
 * Programs that are not installed are skipped by name, except the shell and Python.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/sandbox_testing.h"
#include "testing/testing.h"

#include <unistd.h>

static void write_lease(struct trial *trial, const char *name, const char *text)
{
    struct error error = {0};
    char path[160];
    const struct text whole = text_of(text);
    snprintf(path, sizeof(path), "%s/%s", trial->lease, name);
    ASSERT_OK(file_replace(path, &whole, 1, 0644, &error));
}

static void run_and_expect(struct trial *trial, struct run run, const char *words)
{
    char output[TRIAL_OUTPUT_MAX];
    run.memory_bytes = run.memory_bytes ? run.memory_bytes : 1024 * TRIAL_MIB;
    run.pids_max = 128;
    run.wait_ms = 60000;
    const struct sandbox_exit result = trial_run(trial, run, output);
    trial_assert_says(output, words);
    assert_int_equal(result.code, 0);
}

static void shell_pipes_redirects_and_knows_its_user(void **state)
{
    const char *const argv[] = {"/bin/sh", "-c",
                                "set -e; cd \"$(mktemp -d)\"; mkfifo f; echo one > f & cat f;"
                                "printf 'b\\na\\n' | sort > sorted; head -n 1 sorted > /dev/stdout;"
                                "seq 1000 | gzip | gunzip | wc -l; [ $(id -un) = souk ];"
                                "date > /dev/null; touch /lease/made /dev/shm/made; echo done",
                                NULL};
    run_and_expect(*state, RUN(.argv = argv), "one\na\n1000\ndone\n");
}

static void python_runs_threads_processes_and_asyncio(void **state)
{
    struct trial *trial = *state;
    write_lease(
        trial, "job.py",
        "import asyncio, concurrent.futures, getpass, multiprocessing, sqlite3, tempfile\n"
        "def square(x): return x * x\n"
        "async def nap(): await asyncio.sleep(0.01); return 1\n" /* clock: asyncio's own */
        "if __name__ == '__main__':\n"
        "    assert getpass.getuser() == 'souk'\n"
        "    assert asyncio.run(nap()) == 1\n"
        "    with multiprocessing.Pool(2) as pool: assert sum(pool.map(square, [1, 2])) == 5\n"
        "    with concurrent.futures.ThreadPoolExecutor(4) as threads:\n"
        "        assert sum(threads.map(square, [1, 2])) == 5\n"
        "    with tempfile.NamedTemporaryFile() as f:\n"
        "        sqlite3.connect(f.name).execute('create table t(x)')\n"
        "    print('all well')\n");
    const char *const argv[] = {"/usr/bin/python3", "/lease/job.py", NULL};
    run_and_expect(trial, RUN(.argv = argv, .has_local_sockets = true), "all well");
}

/* Four blocks of a second each, straight to the disk, where the kernel limits that. */
static void disk_is_read_and_written_at_the_rate_given(void **state)
{
    struct trial *trial = *state;
    char disk[32];
    if (!sandbox_is_hard(trial->host) || !cgroup_find_disk(trial->lease, disk))
        SKIP("needs root and cgroups with a disk to bound");
    const char *const argv[] = {"/bin/dd", "if=/dev/zero", "of=/lease/x", "bs=1M",
                                "count=4", "oflag=direct", "status=none", NULL};
    const int64_t begin_ns = clock_monotonic_ns(&clock_system);
    char output[TRIAL_OUTPUT_MAX];
    const struct sandbox_exit result =
        trial_run(trial, RUN(.argv = argv, .io_bytes_per_s = 2 * TRIAL_MIB), output);
    const int64_t took_ms = (clock_monotonic_ns(&clock_system) - begin_ns) / 1000000;
    if (strstr(output, "Invalid argument"))
        SKIP("a file system without direct access");
    assert_int_equal(result.code, 0);
    assert_true(took_ms >= 1000);
}

/* True when the command, run here, succeeds. */
static bool host_has(const char *command)
{
    return system(command) == 0; // NOLINT(concurrency-mt-unsafe): one thread
}

static void torch_trains_with_loader_processes(void **state)
{
    if (!host_has("/usr/bin/python3 -c 'import torch' 2>/dev/null"))
        SKIP("python3-torch is not installed");
    struct trial *trial = *state;
    write_lease(trial, "job.py",
                "import os\n"
                "os.environ['OMP_NUM_THREADS'] = '1'  # as a lender sets it\n"
                "import torch\n"
                "from torch.utils.data import DataLoader, TensorDataset\n"
                "if __name__ == '__main__':\n"
                "    data = TensorDataset(torch.randn(256, 10), torch.randn(256, 1))\n"
                "    model = torch.nn.Linear(10, 1)\n"
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
                "    for x, y in DataLoader(data, batch_size=64, num_workers=2):\n"
                "        optimizer.zero_grad()\n"
                "        ((model(x) - y) ** 2).mean().backward()\n"
                "        optimizer.step()\n"
                "    torch.save(model.state_dict(), '/lease/model.pt')\n"
                "    print('trained')\n");
    const char *const argv[] = {"/usr/bin/python3", "/lease/job.py", NULL};
    run_and_expect(trial,
                   RUN(.argv = argv, .has_local_sockets = true, .memory_bytes = 2048 * TRIAL_MIB),
                   "trained");
}

/* The sandbox's own loopback, which bubblewrap raises, is enough. */
static int loopback_only(void *context, pid_t inside, struct error *error)
{
    (void)context, (void)inside, (void)error;
    return 0;
}

static void java_runs_and_finds_its_network(void **state)
{
    if (!host_has("test -x /usr/bin/java"))
        SKIP("default-jre-headless is not installed");
    struct trial *trial = *state;
    write_lease(trial, "Job.java",
                "public class Job { public static void main(String[] a) throws Exception {\n"
                "  long sum = java.util.stream.LongStream.range(0, 100000).parallel().sum();\n"
                "  var device = java.net.NetworkInterface.getNetworkInterfaces().nextElement();\n"
                "  var server = new java.net.ServerSocket(0);\n"
                "  new java.net.Socket(\"localhost\", server.getLocalPort());\n"
                "  new ProcessBuilder(\"/bin/echo\", \"child\").inheritIO().start().waitFor();\n"
                "  System.out.println(sum + \" \" + device.getName() + \" \" + "
                "System.getProperty(\"user.name\")); } }\n");
    const char *const argv[] = {"/usr/bin/java", "-Xmx256m", "/lease/Job.java", NULL};
    run_and_expect(trial, RUN(.argv = argv, .set_up_network = loopback_only), "4999950000 lo souk");
}

static void mpi_ranks_talk_to_each_other(void **state)
{
    if (!host_has("test -x /usr/bin/mpirun && /usr/bin/python3 -c 'import mpi4py' 2>/dev/null"))
        SKIP("openmpi-bin and python3-mpi4py are not installed");
    struct trial *trial = *state;
    write_lease(trial, "job.py",
                "from mpi4py import MPI\n"
                "world = MPI.COMM_WORLD\n"
                "if world.allreduce(world.rank + 1) == 3 and world.rank == 0: print('summed')\n");
    const char *const argv[] = {
        "/usr/bin/env",     "PATH=/usr/bin:/bin", "mpirun", "--oversubscribe", "-n", "2",
        "/usr/bin/python3", "/lease/job.py",      NULL};
    run_and_expect(trial, RUN(.argv = argv, .set_up_network = loopback_only), "summed");
}

static int run_all(const char *name)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TEST(shell_pipes_redirects_and_knows_its_user),
        TRIAL_TEST(python_runs_threads_processes_and_asyncio),
        TRIAL_TEST(disk_is_read_and_written_at_the_rate_given),
        TRIAL_TEST(torch_trains_with_loader_processes),
        TRIAL_TEST(java_runs_and_finds_its_network),
        TRIAL_TEST(mpi_ranks_talk_to_each_other),
    };
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return trial_main("sandbox_probe", run_all);
}
