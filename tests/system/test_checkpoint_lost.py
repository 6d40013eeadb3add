"""A rank whose machine dies: its successor has the checkpoint, though the market was started anew meanwhile.

covers worker/command_checkpoint.c, server/checkpoints.c
"""
import pytest

from checkpoints import Place
from training import wait_for

# Counts on from its checkpoint; what is half written when it ends must never be seen again.
COUNTER = r"""
import os, signal, sys
folder, own = os.environ["SOUK_CHECKPOINT_DIR"], os.environ["SOUK_RANK_CHECKPOINT_DIR"]
count_path, own_path = os.path.join(folder, "count"), os.path.join(own, "own")
count = int(open(count_path).read()) if os.path.exists(count_path) else 0
mine = int(open(own_path).read()) if os.path.exists(own_path) else 0
print("begins at", count, "own", mine, "sees", sorted(os.listdir(folder)), flush=True)
def save(path, value):
    with open(path + ".tmp", "w") as file:
        file.write(str(value))
    os.rename(path + ".tmp", path)
if count == 0:
    save(count_path, 7)
    save(own_path, 30 + int(os.environ["SOUK_RANK"]))
    print("saved", flush=True)
    signal.pause()
print("goes on", flush=True)
"""


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    try:
        yield place
    finally:
        place.stop()


def test_a_successor_goes_on_from_the_checkpoint_that_outlives_the_market(place):
    place.lend("first")
    job = place.submit(COUNTER)
    wait_for("both checkpoints", lambda: {"checkpoint", "checkpoint-rank0"} <= place.artifacts(job).keys())
    place.market.stop()  # what the market kept outlives it
    place.market.start()
    place.lend("spare")
    place.settings({"lost_ms": 1000})
    place.lenders["first"].die()

    done = place.ended(job)
    assert done["state"] == "succeeded", (done, place.log(job))
    assert "begins at 7 own 30 sees ['count']" in place.log(job)

    place.lenders["first"].start()  # it clears what its former self left
    wait_for("its folders to go", lambda: not list((place.folder / "first" / "leases").glob("*")))
