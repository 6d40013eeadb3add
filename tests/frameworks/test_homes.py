"""torch's DDP and a ring of Open MPI on three lenders, two of them behind routers that translate addresses.

In the middle of each, a rank dies and a lender's cable is cut. `make test-frameworks` installs the packages.
"""
import re
import subprocess

import pytest
from networks import HERE, homes  # noqa: F401 (a fixture)
from ranks import HUNG_JOB_S
from training import wait_for

TORCH_SCRIPT = (HERE.parent.parent / "examples" / "torch-ddp.py").read_text()
TORCH = {"runtime": "torch", "num_nodes": 3, "resources": {"cpus": 0.4, "memory": 0.8, "labels": ["python3-torch"]}}
MPI = {"runtime": "mpi", "num_nodes": 3, "resources": {"cpus": 0.4, "memory": 0.3}}


def finish(place, process):
    out, err = process.communicate(timeout=HUNG_JOB_S)
    if process.returncode != 0:
        pytest.fail(f"{out}\n{err}\n{place.logs()}")


def has_said(place, words, rank=0):
    jobs = place.market.get("/v1/jobs", place.token).json["items"]
    if jobs and place.job()["state"] in ("failed", "cancelled"):
        pytest.fail(f"{place.job()['reason']}\n{place.logs()}")
    return jobs and words in place.log(rank)


def assert_trained(place, steps):
    """Each rank logged for itself, and all have the same model."""
    weights = [re.findall(rf"^rank {rank}: weights (\S+)$", place.log(rank), re.M) for rank in range(3)]
    assert all(len(found) == 1 for found in weights) and len({found[0] for found in weights}) == 1, place.logs()
    losses = [float(loss) for loss in re.findall(r"of 3 ranks: loss (\S+)", place.log(0))]
    assert losses[-1] < losses[0] and f"step {steps - 1} of 3 ranks" in place.log(0), place.logs()


def test_torch_trains_one_model(homes):
    place = homes()
    finish(place, place.start(TORCH_SCRIPT, {**TORCH, "envs": {"STEPS": "60"}}))
    assert_trained(place, 60)
    assert place.job()["state"] == "succeeded"


def test_a_killed_rank_of_torch_is_named_and_all_begin_anew(homes):
    place = homes()
    dies = TORCH_SCRIPT.replace("    x = torch", """    if step == 30 and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), 9)
    x = torch""")
    finish(place, place.start(dies, {**TORCH, "envs": {"STEPS": "60"}, "max_restarts": 3}))
    # The others notice the closed connection as soon as anybody: whose failure is told first is not ours to say.
    assert re.search(r"souk: rank \d on \w+: .*; all start anew, 1 of 3\n", place.logs()), place.logs()
    assert_trained(place, 60)


def test_a_lender_lost_to_torch_is_named_and_another_takes_its_place(homes):
    place = homes()
    process = place.start(TORCH_SCRIPT.replace("    x = torch", "    import time; time.sleep(0.02)\n    x = torch"),  # clock: a step's work
                          {**TORCH, "envs": {"STEPS": "1500"}})
    wait_for("some steps", lambda: has_said(place, "step 50 of 3 ranks"), HUNG_JOB_S)
    place.settings({"lost_ms": 7000})
    place.lend("spare")
    lost = place.machine_of(2)
    place.unplug(lost)
    finish(place, process)
    assert f"souk: rank 2 on {lost}: not heard for 6 s\n" in place.log(0), place.logs()
    assert_trained(place, 1500)


@pytest.fixture
def ring(homes, tmp_path):
    (tmp_path / "files").mkdir()
    subprocess.run(["mpicc", "-O2", str(HERE / "ring.c"), "-o", str(tmp_path / "files" / "ring")], check=True)
    return homes()


def test_mpirun_passes_a_number_around(ring):
    finish(ring, ring.start("", {**MPI, "run": "mpirun ./ring 5"}))
    assert "3 ranks counted 15\n" in ring.log(0), ring.logs()
    assert "lap" not in ring.log(1) + ring.log(2)


def test_a_killed_rank_of_mpi_begins_the_ring_anew(ring):
    finish(ring, ring.start("", {**MPI, "run": "mpirun -x RING_DIES=1 ./ring 20", "max_restarts": 1}))
    assert re.search(r"souk: rank 0 on \w+: exit status \d+; all start anew, 1 of 1\n", ring.log(0)), ring.logs()
    assert "3 ranks counted 60\n" in ring.log(0), ring.logs()


def test_a_lender_lost_to_mpi_is_named_and_the_ring_begins_anew(ring):
    process = ring.start("", {**MPI, "run": "mpirun ./ring 200"})
    wait_for("some laps", lambda: has_said(ring, "lap 10\n"), HUNG_JOB_S)
    ring.settings({"lost_ms": 7000})
    ring.lend("spare")
    lost = ring.machine_of(2)
    ring.unplug(lost)
    finish(ring, process)
    assert f"souk: rank 2 on {lost}: not heard for 6 s\n" in ring.log(0), ring.logs()
    assert "3 ranks counted 600\n" in ring.log(0), ring.logs()
