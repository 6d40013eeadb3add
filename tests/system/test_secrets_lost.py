"""A rank whose machine dies: its successor has the job's secrets, though the market was killed meanwhile.

covers server/secrets.c, server/sealed.c
"""
import pytest

from checkpoints import Place
from hidden import Hush, where_it_is
from training import wait_for


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    try:
        yield place
    finally:
        place.stop()


def test_a_successor_has_the_secrets_that_outlive_the_market(place):
    place.lend("first")
    hush = Hush(place)
    wait_for("the first rank", lambda: f"found {hush.digest}" in place.log(hush.id))
    wait_for("its checkpoint", lambda: "checkpoint" in place.artifacts(hush.id))
    place.market.kill()
    place.market.start()
    place.lend("spare")
    place.settings({"lost_ms": 5000})
    place.lenders["first"].die()
    done = place.ended(hush.id)
    assert done["state"] == "succeeded", (done, place.log(hush.id))
    assert f"found {hush.digest}" in place.log(hush.id)
    assert [lease["machine_name"] for lease in done["leases"]][-1] == "spare"
    wait_for("its secrets to go", lambda: not list((place.folder / "market" / "secrets").iterdir()))
    assert where_it_is(place.folder, hush.words) == []

    place.lenders["first"].start()  # it clears what its former self left
    wait_for("its folders to go", lambda: not list((place.folder / "first" / "leases").glob("*")))
