"""Frameworks' runtimes: each rank finds the others as its framework expects, with nothing but Python.

covers worker/command_environment.c, worker/command_files.c, worker/launcher_main.c, worker/crew.c, worker/crew_lead.c, worker/crew_follow.c, worker/line_link.c, worker/script.c, worker/script_group.c
"""
import contextlib
import os
import signal
import uuid

import pytest

from checkpoints import processes_with
from ranks import Place
from serving import HUNG_S
from training import wait_for

# What a script for torchrun does first: all meet at the master, which tells each what all brought.
MEET = """
import json, os, signal, socket, sys, time
env = os.environ

def dial(address):
    while True:
        try:
            return socket.create_connection(address, timeout=60)  # clock: a rank in a sandbox, that has hung
        except OSError:
            time.sleep(0.05)  # clock: it does not listen yet, and nothing tells when

def say(*words):
    # In one piece: processes of one rank share its log.
    os.write(1, (" ".join(words) + "\\n").encode())

# None goes on before all have said it.
def meet(master, is_first, size, word, *more):
    if is_first:
        server = socket.create_server(master)
        words, files = [word], []
        while len(files) < size - 1:
            files.append(server.accept()[0].makefile("rw"))
        words += [file.readline().strip() for file in files]
        for file in files:
            print(json.dumps(sorted(words)), file=file, flush=True)
        say("met", *sorted(words), *more)
        assert all(file.readline() == "said\\n" for file in files)
        for file in files:
            print("go on", file=file, flush=True)
        return
    file = dial(master).makefile("rw")
    print(word, file=file, flush=True)
    say("met", *json.loads(file.readline()), *more)
    print("said", file=file, flush=True)
    assert file.readline() == "go on\\n"
"""

TORCH = MEET + """
rank, size = int(env["RANK"]), int(env["WORLD_SIZE"])
assert env["GROUP_RANK"] == env["ROLE_RANK"] == env["RANK"] and env["LOCAL_RANK"] == "0", env
assert env["OMP_NUM_THREADS"] == "1" and env["GLOO_SOCKET_IFNAME"] in [name for _, name in socket.if_nameindex()], env
meet((env["MASTER_ADDR"], int(env["MASTER_PORT"])), rank == 0, size, "%d@%s" % (rank, env["SOUK_ADDRESS"]),
     "restart", env["TORCHELASTIC_RESTART_COUNT"])
"""

TENSORFLOW = MEET + """
config = json.loads(env["TF_CONFIG"])
task = config["task"]
hosts = [host for kind in ("chief", "worker", "ps") for host in config["cluster"].get(kind, [])]
own = config["cluster"][task["type"]][task["index"]]
assert own.split(":")[0] == env["SOUK_ADDRESS"], config
host, port = hosts[0].split(":")
meet((host, int(port)), own == hosts[0], len(hosts), "%s-%d" % (task["type"], task["index"]))
"""


pytestmark = pytest.mark.skipif(not os.access("/dev/net/tun", os.R_OK | os.W_OK), reason="no /dev/net/tun here")


@contextlib.contextmanager
def three_lenders(folder):
    place = Place(folder, ("first", "second", "third"))
    try:
        yield place
    finally:
        place.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """For all whose machines stay."""
    with three_lenders(tmp_path_factory.mktemp("place")) as place:
        yield place


@pytest.fixture
def mortal(tmp_path):
    """For those whose machines die."""
    with three_lenders(tmp_path) as place:
        yield place


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


def hold_until_restarted(place, job, ranks):
    """Starts a job whose ranks meet and then wait, until they were started anew."""
    script = TORCH + """
if env["TORCHELASTIC_RESTART_COUNT"] == "0":
    signal.pause()
"""
    process = place.start(script, job)
    wait_for("the first round", lambda: place.market.get("/v1/jobs", place.token).json["items"] and all(
        "restart 0\n" in place.log(rank) for rank in range(ranks)))
    return process


def test_a_lost_rank_is_named_and_all_start_anew_with_its_successor(mortal):
    process = hold_until_restarted(mortal, {"runtime": "torch", "num_nodes": 3}, 3)
    mortal.lend("fourth")
    lost = next(lease for lease in mortal.job()["leases"] if lease["rank"] == 2)
    mortal.settings({"lost_ms": 120000})
    mortal.die(lost["machine_name"])
    wait_for("the job to name it",
             lambda: mortal.job()["reason"] == f"rank 2 on {lost['machine_name']}: not heard for 6 s")
    wait_for("rank 0 to name it", lambda: f"souk: rank 2 on {lost['machine_name']}: not heard for 6 s\n" in mortal.log(0))
    mortal.settings({"lost_ms": 1000})
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [mortal.log(rank) for rank in range(3)])
    assert mortal.log(0).count("met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3") == 2


def end_while_unheard(place):
    """A job of two ranks that both end well once the second's machine is silent. Returns it and the machine's name."""
    script = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
""" + TORCH + """
signal.sigwait([signal.SIGUSR1])
with open(env["SOUK_OUTPUT_DIR"] + "/o.txt", "w") as file:
    print(rank, file=file)
print("done", flush=True)
"""
    word = uuid.uuid4().hex
    process = place.start(script, {"runtime": "torch", "num_nodes": 2, "restart": "rank",
                                   "run": f"exec /usr/bin/python3 script.py {word}"})
    wait_for("the first round", lambda: place.market.get("/v1/jobs", place.token).json["items"] and all(
        "restart 0\n" in place.log(rank) for rank in range(2)))

    def second():
        return next(lease for lease in place.job()["leases"] if lease["rank"] == 1)

    name = second()["machine_name"]
    place.lenders[name].stop(signal.SIGKILL)
    wait_for("its silence", lambda: second()["unreachable"])
    pids = processes_with(word)
    assert len(pids) == 2
    for pid in pids:
        os.kill(pid, signal.SIGUSR1)
    wait_for("rank 0's end", lambda: place.job()["state"] != "running")
    return process, name


def files_of(place):
    return [item["name"] for item in place.market.get(f"/v1/jobs/{place.job()['id']}/artifacts", place.token).json["items"]]


def test_what_a_rank_left_is_waited_for_while_its_machine_is_not_heard(mortal):
    mortal.settings({"lost_ms": 120000})
    process, name = end_while_unheard(mortal)
    assert mortal.job()["state"] == "stopping", mortal.job()
    mortal.lenders[name].start()
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, mortal.job())
    assert sorted(files_of(mortal)) == ["rank0-o.txt", "rank1-o.txt"]
    assert mortal.job()["reason"] == "" and mortal.log(1).endswith("done\n"), (mortal.job(), mortal.log(1))


def test_that_what_a_rank_left_is_lost_is_said(mortal):
    mortal.settings({"lost_ms": 120000})
    process, name = end_while_unheard(mortal)
    mortal.settings({"lost_ms": 1000})
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, mortal.job())
    assert files_of(mortal) == ["rank0-o.txt"]
    assert mortal.job()["reason"] == f"the files of rank 1 and the end of its log are lost with {name}"
    mortal.lenders[name].start()  # it keeps nothing of what nobody takes any more
    wait_for("its keeper's end", lambda: not mortal.lenders[name].keepers())


def test_a_lost_rank_0_is_waited_for_and_the_rounds_count_on(mortal):
    process = hold_until_restarted(mortal, {"runtime": "torch", "num_nodes": 2}, 2)
    lost = next(lease for lease in mortal.job()["leases"] if lease["rank"] == 0)
    mortal.settings({"lost_ms": 1000})
    mortal.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [mortal.log(rank) for rank in range(2)])
    assert "souk: rank 0: " in mortal.log(1)
    for rank in range(2):
        assert "met 0@10.77.0.1 1@10.77.0.2 restart 1\n" in mortal.log(rank)


def test_never_restarted_the_job_fails_and_names_who_was_lost(mortal):
    process = hold_until_restarted(mortal, {"runtime": "torch", "num_nodes": 2, "restart": "never"}, 2)
    lost = next(lease for lease in mortal.job()["leases"] if lease["rank"] == 1)
    mortal.settings({"lost_ms": 9000})
    mortal.die(lost["machine_name"])
    process.communicate(timeout=HUNG_S)
    assert process.returncode != 0
    assert f"rank 1 on {lost['machine_name']}: not heard for 6 s" in mortal.job()["reason"], mortal.job()


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


def test_an_elastic_job_goes_on_with_those_that_are_left(mortal):
    script = TORCH + """
if size == 3:
    signal.pause()
"""
    process = mortal.start(script, {"runtime": "torch", "num_nodes": "2..3"})
    wait_for("three ranks", lambda: mortal.market.get("/v1/jobs", mortal.token).json["items"] and all(
        "met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3" in mortal.log(rank) for rank in range(3)))
    lost = next(lease for lease in mortal.job()["leases"] if lease["rank"] == 1)
    mortal.settings({"lost_ms": 1000})
    mortal.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [mortal.log(rank) for rank in range(3)])
    for rank in (0, 2):
        assert "met 0@10.77.0.1 1@10.77.0.3 restart" in mortal.log(rank), mortal.log(rank)
    assert mortal.job()["state"] == "succeeded", mortal.job()
