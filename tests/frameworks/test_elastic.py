"""The world of an elastic job as a lender comes and another goes; needs nothing but Python, and a minute."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))

from serving import HUNG_S  # noqa: E402
from test_frameworks import TORCH, place  # noqa: E402, F401 (a fixture)
from training import wait_for  # noqa: E402


def test_the_world_of_an_elastic_job_grows_and_shrinks(place):
    script = TORCH + """
if size == 4 or env["TORCHELASTIC_RESTART_COUNT"] == "0":
    time.sleep(600)  # clock: until the test ends it
"""
    process = place.start(script, {"runtime": "torch", "num_nodes": "3..4"})
    wait_for("three ranks", lambda: place.market.get("/v1/jobs", place.token).json["items"] and all(
        "met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3 restart 0\n" in place.log(rank) for rank in range(3)))
    place.lend("fourth")
    wait_for("a fourth", lambda: all(
        "met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3 3@10.77.0.4 restart" in place.log(rank) for rank in range(4)))
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 3)
    assert lost["machine_name"] == "fourth"
    place.die("fourth")
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err, [place.log(rank) for rank in range(3)])
    for rank in range(3):
        assert place.log(rank).count("met 0@10.77.0.1 1@10.77.0.2 2@10.77.0.3 restart") == 2, place.log(rank)
