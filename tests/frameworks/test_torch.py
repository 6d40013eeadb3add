"""torch's DistributedDataParallel over gloo, on three ranks, as torchrun would start it; one is lost on the way.

Needs Debian's python3-torch, which `make test-frameworks` installs.
"""
import pathlib
import re
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from ranks import Place  # noqa: E402
from serving import HUNG_S  # noqa: E402
from training import wait_for  # noqa: E402

SCRIPT = (HERE.parent.parent / "examples" / "torch-ddp.py").read_text()
JOB = {"runtime": "torch", "num_nodes": 3, "resources": {"cpus": 0.3, "memory": 0.8, "labels": ["python3-torch"]}}


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path, ("first", "second", "third"))
    try:
        yield place
    finally:
        place.stop()


def assert_trained(place, steps):
    weights = {re.search(r"weights (\S+)", place.log(rank))[1] for rank in range(3)}
    assert len(weights) == 1, [place.log(rank) for rank in range(3)]  # all ranks have the same model
    losses = [float(loss) for loss in re.findall(r"of 3 ranks: loss (\S+)", place.log(0))]
    assert losses[-1] < losses[0], losses
    assert f"step {steps - 1} of 3 ranks" in place.log(0)


def test_ranks_train_one_model(place):
    done = place.run(SCRIPT, {**JOB, "envs": {"STEPS": "60"}})
    assert done.returncode == 0, (done.out, done.err, [place.log(rank) for rank in range(3)])
    assert_trained(place, 60)


def test_who_comes_later_trains_too(place):
    """An elastic job begins anew with one more; four ranks average what three did."""
    waits = SCRIPT.replace("for step in range(STEPS):", """if size == 3:
    STEPS = 10 ** 9
for step in range(STEPS):""")
    process = place.start(waits, {**JOB, "num_nodes": "3..4", "envs": {"STEPS": "60"}})
    wait_for("some steps", lambda: place.market.get("/v1/jobs", place.token).json["items"]
             and "step 50 of 3 ranks" in place.log(0))
    place.lend("fourth")
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [place.log(rank) for rank in range(4)])
    weights = {re.search(r"weights (\S+)", place.log(rank))[1] for rank in range(4)}
    assert len(weights) == 1 and "step 59 of 4 ranks" in place.log(0), [place.log(rank) for rank in range(4)]


def test_several_processes_of_each_rank_train_one_model(place):
    done = place.run(SCRIPT, {**JOB, "num_nodes": 2, "torch": {"processes": 2}, "envs": {"STEPS": "60"}})
    said = [place.log(rank) for rank in range(2)]
    assert done.returncode == 0, (done.out, done.err, said)
    weights = re.findall(r"rank \d: weights (\S+)", "".join(said))
    assert len(weights) == 4 and len(set(weights)) == 1 and "step 59 of 4 ranks" in said[0], said


def test_a_lost_rank_is_named_and_the_others_train_on_with_its_successor(place):
    place.lend("fourth")
    process = place.start(SCRIPT, {**JOB, "envs": {"STEPS": "400"}})
    wait_for("some steps", lambda: place.market.get("/v1/jobs", place.token).json["items"]
             and "step 50 of 3 ranks" in place.log(0))
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 1)
    place.settings({"lost_ms": 7000})
    place.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [place.log(rank) for rank in range(3)])
    # gloo notices a closed connection itself, where there is one; else the silence is named
    assert f"souk: rank 1 on {lost['machine_name']}: not heard for 6 s" in place.log(0)
    assert_trained(place, 400)
