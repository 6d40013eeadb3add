"""Frameworks' runtimes: each rank finds the others as its framework expects, with nothing but Python.

covers worker/command_environment.c, worker/command_files.c, worker/launcher_main.c, worker/crew.c, worker/crew_lead.c, worker/crew_follow.c, worker/line_link.c, worker/script.c, worker/script_group.c
"""
import pytest

from meeting import MEET, TORCH
from ranks import Place
from training import needs_tun

TENSORFLOW = MEET + """
config = json.loads(env["TF_CONFIG"])
task = config["task"]
hosts = [host for kind in ("chief", "worker", "ps") for host in config["cluster"].get(kind, [])]
own = config["cluster"][task["type"]][task["index"]]
assert own.split(":")[0] == env["SOUK_ADDRESS"], config
host, port = hosts[0].split(":")
meet((host, int(port)), own == hosts[0], len(hosts), "%s-%d" % (task["type"], task["index"]))
"""

pytestmark = needs_tun


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("place"), ("first", "second", "third"))
    try:
        yield place
    finally:
        place.stop()


def test_a_script_for_torchrun_meets_its_other_ranks(place):
    done = place.run(TORCH, {"runtime": "torch", "num_nodes": 3})
    assert done.returncode == 0, (done.out, done.err, [place.log(rank) for rank in range(3)])
    for rank in range(3):
        assert "met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3 restart 0\n" in place.log(rank)


def test_a_rank_of_several_processes_counts_them_all(place):
    script = TORCH.replace('env["GROUP_RANK"] == env["ROLE_RANK"] == env["RANK"] and env["LOCAL_RANK"] == "0"',
                           'int(env["GROUP_RANK"]) * 2 + int(env["LOCAL_RANK"]) == rank')
    script += """
if rank == 2 and env["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(4)
if env["TORCHELASTIC_RESTART_COUNT"] == "0":
    signal.pause()
"""
    done = place.run(script, {"runtime": "torch", "num_nodes": 2, "torch": {"processes": 2}, "max_restarts": 1})
    said = [place.log(rank) for rank in range(2)]
    assert done.returncode == 0, (done.out, done.err, said)
    met = "met 0@10.77.0.1 1@10.77.0.1 2@10.77.0.2 3@10.77.0.2 restart 1\n"
    assert all(log.count(met) == 2 for log in said), said
    assert ": exit status 4; all start anew, 1 of 1\n" in said[0], said


@pytest.mark.parametrize("servers, met", [(0, "met worker-0 worker-1 worker-2\n"), (1, "met chief-0 ps-0 worker-0\n")])
def test_tensorflow_is_told_its_cluster(place, servers, met):
    job = {"runtime": "tensorflow", "num_nodes": 3}
    if servers:
        job["tensorflow"] = {"parameter_servers": servers}
    done = place.run(TENSORFLOW, job)
    assert done.returncode == 0, (done.out, done.err, [place.log(rank) for rank in range(3)])
    for rank in range(3):
        assert met in place.log(rank)


def test_all_start_anew_when_one_fails_as_often_as_the_job_allows(place):
    script = TORCH + """
if env["TORCHELASTIC_RESTART_COUNT"] == "0":
    if rank == 1:
        sys.exit(3)
    signal.pause()
"""
    done = place.run(script, {"runtime": "torch", "num_nodes": 2, "max_restarts": 1})
    assert done.returncode == 0, (done.out, done.err, [place.log(rank) for rank in range(2)])
    name = next(lease["machine_name"] for lease in place.job()["leases"] if lease["rank"] == 1)
    assert f"souk: rank 1 on {name}: exit status 3; all start anew, 1 of 1\n" in place.log(0)
    for rank in range(2):
        assert "met 0@10.77.0.1 1@10.77.0.2 restart 1\n" in place.log(rank)


def test_the_job_ends_with_the_status_of_the_first_that_failed(place):
    script = TORCH + """
if rank == 1:
    sys.exit(3)
signal.pause()
"""
    done = place.run(script, {"runtime": "torch", "num_nodes": 3})
    assert done.returncode != 0, done
    job = place.job()
    assert job["state"] == "failed" and job["reason"].startswith("rank 1 failed: exit status 3"), job
    assert next(lease["exit_code"] for lease in job["leases"] if lease["rank"] == 1) == 3, job


def test_rank_0_of_mpi_launches_on_the_others_and_nobody_else_does(place):
    run = "cat $OMPI_MCA_orte_default_hostfile; " \
          "env -u SOUK_LAUNCH_SECRET $OMPI_MCA_plm_rsh_agent 10.77.0.2 echo no; " \
          "SOUK_LAUNCH_SECRET=$(printf '00%.0s' $(seq 32)) $OMPI_MCA_plm_rsh_agent 10.77.0.2 echo neither; " \
          "$OMPI_MCA_plm_rsh_agent 10.77.0.9 echo nobody; " \
          "$OMPI_MCA_plm_rsh_agent 10.77.0.2 'echo yes of' '$SOUK_RANK; exit 5'; echo status $?"
    done = place.run("", {"runtime": "mpi", "num_nodes": 2, "run": run})
    said = [place.log(rank) for rank in range(2)]
    assert done.returncode == 0, (done.err, said)
    assert said[1] == "yes of 1\n", said
    assert said[0].startswith("10.77.0.1 slots=1\n10.77.0.2 slots=1\n") and said[0].endswith("status 5\n"), said
    assert 'souk: a launcher asks for "10.77.0.9", which is no rank here\n' in said[0], said
    assert said[0].count("launch_failed") == 3, said


def test_a_launcher_whose_caller_is_done_has_nothing_to_say(place):
    """As mpirun leaves its own: they wait for daemons that end a moment after it."""
    script = """
import os, shlex, socket, subprocess
server = socket.create_server(("", 7000))
begun = "echo begun; exec python3 -c 'import signal, socket; held = socket.create_connection((\\"10.77.0.1\\", 7000)); signal.pause()'"
subprocess.Popen(["setsid", *shlex.split(os.environ["OMPI_MCA_plm_rsh_agent"]), "10.77.0.2", begun])
server.accept()
print("done", flush=True)
"""
    done = place.run(script, {"runtime": "mpi", "num_nodes": 2})
    said = [place.log(rank) for rank in range(2)]
    assert done.returncode == 0, (done.err, said)
    assert said == ["done\n", "begun\n"]


