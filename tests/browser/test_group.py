"""Groups in the settings of the page, with another account that joins, and a machine that is lent to the group."""
from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit
from training import Lender, wait_for


def test_a_group_is_made_joined_and_left(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    lender = None
    try:
        ada, bob, eve = (market.sign_up(name) for name in ("ada", "bob", "eve"))
        assert market.post("/v1/groups", {"name": "taken"}, eve).status == 201
        lender = Lender(market, ada, tmp_path / "box", "box")
        machine = wait_for("the machine", lambda: market.get("/v1/machines?mine=true", ada).json["items"])[0]
        page = market.post("/v1/account/page-codes", {}, ada).json
        with Walk("group.mjs", page["url"], tmp_path) as walk:
            code = walk.hear()
            joined = market.post("/v1/account/group", {"code": code}, bob)
            walk.answer()
            walk.expect("machine")
            walk.answer(str(machine["id"]))
            walk.expect("saved")
            offer = wait_for("the offer's audience", lambda: next(
                (each for each in market.get("/v1/offers?mine=true", ada).json["items"] if each["audience"] == "group"), None))
            walk.answer(offer["group"])
            walk.expect("join")
            walk.answer(market.post("/v1/account/group/codes", {}, eve).json["code"])
            walk.expect("out")
            mine = market.get("/v1/account", ada).json["id"]
            assert market.call("DELETE", f"/v1/account/group/members/{mine}", None, eve).status == 204
            walk.answer()
            seen = walk.end()
    finally:
        if lender:
            lender.stop()
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert joined.status == 201 and seen["typed"] == "lab"
    assert seen["members"] == ["ada", "bob"] and seen["joined"] == ["ada", "eve"] and seen["buttons"] == 0
    assert seen["audience"] == "lab"
    assert_clean(seen)
