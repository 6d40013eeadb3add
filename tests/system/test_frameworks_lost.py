"""Jobs of frameworks lose a rank's machine: all ranks restart, or the job names the lost files.

covers worker/crew.c, worker/crew_lead.c, worker/crew_follow.c
"""
import os
import signal
import uuid

import pytest

from checkpoints import processes_with
from meeting import TORCH
from ranks import Place
from serving import HUNG_S
from training import needs_tun, wait_for

pytestmark = needs_tun


@pytest.fixture(scope="module")
def lenders(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("place"), ("first", "second", "third"))
    try:
        yield place
    finally:
        place.stop()


@pytest.fixture
def place(lenders):
    """The shared lenders; those that die come back for the next case."""
    yield lenders
    lenders.revive()


def hold_until_restarted(place, job, ranks):
    """Starts a job. Its ranks meet and then wait until they are restarted."""
    script = TORCH + """
if env["TORCHELASTIC_RESTART_COUNT"] == "0":
    signal.pause()
"""
    process = place.start(script, job)
    wait_for("the first round", lambda: place.has_begun() and all(
        "restart 0\n" in place.log(rank) for rank in range(ranks)))
    return process


def test_a_lost_rank_is_named_and_all_start_anew_with_its_successor(place):
    process = hold_until_restarted(place, {"runtime": "torch", "num_nodes": 2}, 2)
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 1)
    place.settings({"lost_ms": 120000})
    place.die(lost["machine_name"])
    wait_for("the job to name it",
             lambda: place.job()["reason"] == f"rank 1 on {lost['machine_name']}: not heard for 6 s")
    wait_for("rank 0 to name it", lambda: f"souk: rank 1 on {lost['machine_name']}: not heard for 6 s\n" in place.log(0))
    place.settings({"lost_ms": 1000})
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [place.log(rank) for rank in range(2)])
    assert place.log(0).count("met 0@10.77.0.1 1@10.77.0.2") == 2


def end_while_unheard(place):
    """Runs two ranks that both succeed after the second's machine falls silent. Returns the process and that machine's name."""
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
    wait_for("the first round", lambda: place.has_begun() and all(
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


def test_what_a_rank_left_is_waited_for_while_its_machine_is_not_heard(place):
    place.settings({"lost_ms": 120000})
    process, name = end_while_unheard(place)
    assert place.job()["state"] == "stopping", place.job()
    place.lenders[name].start()
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, place.job())
    assert sorted(files_of(place)) == ["rank0-o.txt", "rank1-o.txt"]
    assert place.job()["reason"] == "" and place.log(1).endswith("done\n"), (place.job(), place.log(1))


def test_that_what_a_rank_left_is_lost_is_said(place):
    place.settings({"lost_ms": 120000})
    process, name = end_while_unheard(place)
    place.settings({"lost_ms": 1000})
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, place.job())
    assert files_of(place) == ["rank0-o.txt"]
    assert place.job()["reason"] == f"the files of rank 1 and the end of its log are lost with {name}"
    place.lenders[name].start()  # it discards files that nobody will fetch
    wait_for("its keeper's end", lambda: not place.lenders[name].keepers())


def test_a_lost_rank_0_is_waited_for_and_the_rounds_count_on(place):
    process = hold_until_restarted(place, {"runtime": "torch", "num_nodes": 2}, 2)
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 0)
    place.settings({"lost_ms": 1000})
    place.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [place.log(rank) for rank in range(2)])
    assert "souk: rank 0: " in place.log(1)
    for rank in range(2):
        assert "met 0@10.77.0.1 1@10.77.0.2 restart 1\n" in place.log(rank)


def test_never_restarted_the_job_fails_and_names_who_was_lost(place):
    process = hold_until_restarted(place, {"runtime": "torch", "num_nodes": 2, "restart": "never"}, 2)
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 1)
    place.settings({"lost_ms": 9000})
    place.die(lost["machine_name"])
    process.communicate(timeout=HUNG_S)
    assert process.returncode != 0
    assert f"rank 1 on {lost['machine_name']}: not heard for 6 s" in place.job()["reason"], place.job()


def test_an_elastic_job_goes_on_with_those_that_are_left(place):
    script = TORCH + """
if size == 3:
    signal.pause()
"""
    process = place.start(script, {"runtime": "torch", "num_nodes": "2..3"})
    wait_for("three ranks", lambda: place.has_begun() and all(
        "met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3" in place.log(rank) for rank in range(3)))
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 1)
    place.settings({"lost_ms": 1000})
    place.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [place.log(rank) for rank in range(3)])
    for rank in (0, 2):
        assert "met 0@10.77.0.1 1@10.77.0.3 restart" in place.log(rank), place.log(rank)
    assert place.job()["state"] == "succeeded", place.job()
