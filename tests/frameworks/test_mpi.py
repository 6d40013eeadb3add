"""Open MPI's mpirun of a ring in C, over the job's network: rank 0 launches the others without ssh.

Needs Debian's openmpi-bin and libopenmpi-dev, which `make test-frameworks` installs.
"""
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from ranks import Place  # noqa: E402
from serving import HUNG_S  # noqa: E402
from training import wait_for  # noqa: E402


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path, ("first", "second", "third"))
    try:
        (tmp_path / "files").mkdir()
        subprocess.run(["mpicc", "-O2", str(HERE / "ring.c"), "-o", str(tmp_path / "files" / "ring")], check=True)
        yield place
    finally:
        place.stop()


def job(**more):
    return {"runtime": "mpi", "num_nodes": 3, "resources": {"cpus": 0.3, "memory": 0.3}, **more}


def logs(place):
    for rank in range(3):
        print(f"-- rank {rank}\n{place.log(rank)}")


def test_a_number_goes_round_all_ranks(place):
    done = place.run("", job(run="mpirun ./ring"))
    assert done.returncode == 0, (done.out, done.err, logs(place))
    assert "3 ranks counted 3\n" in place.log(0), logs(place)


def test_a_ring_that_fails_ends_the_job_with_its_status(place):
    done = place.run("", job(run="mpirun sh -c 'exit 7'"))
    assert done.returncode != 0, (done.out, done.err, logs(place))
    assert place.job()["reason"].startswith("rank 0 failed: exit status 7"), (place.job(), logs(place))


def test_a_lost_rank_is_named_and_the_ring_begins_anew(place):
    place.lend("fourth")
    process = place.start("", job(run="mpirun ./ring 200"))
    wait_for("some laps", lambda: place.market.get("/v1/jobs", place.token).json["items"] and "lap 10\n" in place.log(0))
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 2)
    place.settings({"lost_ms": 7000})
    place.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, logs(place))
    assert f"souk: rank 2 on {lost['machine_name']}: not heard for 6 s\n" in place.log(0), logs(place)
    assert "3 ranks counted 600\n" in place.log(0), logs(place)
