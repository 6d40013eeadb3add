"""A rank that starts again, alone, when others of its job have ended well.

covers worker/crew_lead.c, worker/crew_follow.c, library/sync_place.c
"""
import pytest

from ranks import Place
from serving import HUNG_S, is_built_with
from training import needs_tun, wait_for

# Python is not linked with them, as libsouk is.
pytestmark = [pytest.mark.skipif(is_built_with("libasan") or is_built_with("libtsan"),
                                 reason="needs a program without sanitizers"),
              needs_tun]

# Rank 1 of the first machine never ends; rank 0 waits for it as long as a lost rank is waited for, and has then ended well.
LATE = """
import os, time
import souk.sync
os.environ["SOUK_SYNC_LOST_MS"] = "1000"
souk.sync.init()
print("met", flush=True)
if souk.sync.rank() == 1:
    time.sleep(600)  # clock: the test ends it before
souk.sync.shutdown()
print("well", flush=True)
"""


def test_a_successor_that_comes_after_rank_0_has_ended_well_ends_well_too(tmp_path):
    place = Place(tmp_path, ("first", "second"))
    try:
        place.settings({"lost_ms": 9000})
        process = place.start(LATE, {"runtime": "torch", "num_nodes": 2, "restart": "rank"})
        wait_for("both ranks", lambda: place.market.get("/v1/jobs", place.token).json["items"] and all(
            "met\n" in place.log(rank) for rank in range(2)))
        place.lend("third")
        place.die(next(lease["machine_name"] for lease in place.job()["leases"] if lease["rank"] == 1))
        wait_for("rank 0's end", lambda: "well\n" in place.log(0))
        out, err = process.communicate(timeout=HUNG_S)
        assert process.returncode == 0, (out, err, place.job(), place.log(0), place.log(1))
        assert place.log(1) == "souk: rank 0 has ended well: nothing is left for rank 1 to do\n"
    finally:
        place.stop()
