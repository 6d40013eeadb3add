"""The operator's screen in a real browser: accounts, freezing, invitations and settings, with a restart between."""
from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit

HTML = "<iframe src=x></iframe><b>spam</b>"


def test_the_operator_freezes_invites_and_sets(tmp_path):
    market = Market(tmp_path / "market", "--listen", f"127.0.0.1:{own_port()}")
    try:
        ada = market.sign_up("ada")
        market.sign_up("bob")
        operator = market.operator_token()
        # Who comes now waits for the first credits: those of the day are given.
        assert market.call("PUT", "/v1/settings", {"grant_daily_microcredits": 1}, operator).status == 200
        dora = market.sign_up("dora")
        code = market.post("/v1/account/page-codes", {}, operator).json
        before = market.get("/v1/settings", operator).json
        # What the page shows beside the fields is what the market takes.
        settings = market.get("/openapi.json").json["components"]["schemas"]["Settings"]["properties"]
        for name, limits in settings.items():
            for outside in (limits["minimum"] - 1, limits["maximum"] + 1):
                assert market.call("PUT", "/v1/settings", {name: outside}, operator).status == 400, (name, outside)
        with Walk("operator.mjs", code["url"], tmp_path) as walk:
            walk.expect("frozen")
            walk.answer(market.get("/v1/account", ada).json["frozen"])
            walk.restart(market)
            seen = walk.end()
        after = market.get("/v1/settings", operator).json
        free = market.get("/v1/account", ada).json["frozen"]
        granted = market.get("/v1/account", dora).json
        invited = market.post("/v1/accounts", {"name": "carol", "invite": seen["invite"]})
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert int(seen["members"]) >= 2 and seen["found"] == ["ada"]
    assert seen["searchesWrong"] == 0 and seen["searches"] > 0
    for word in ("running for", "events in the log", "the books", "memory", "machines linked", "changes waiting"):
        assert any(word in figure for figure in seen["service"]), (word, seen["service"])
    assert seen["freezesWrong"] == 0 and seen["freezes"] == 1
    assert seen["reason"] == HTML and seen["frozenAt"] == HTML and free == ""
    assert any("sum of all accounts0.00" in figure for figure in seen["audit"])
    assert "waits for its grant" in seen["waits"] and seen["grants"] == 1
    assert granted["grant"] == "given" and granted["available_microcredits"] == 10_000_000
    assert seen["copied"] == seen["invite"] and invited.status == 201
    assert "From 0 to 5." in seen["range"]
    assert seen["askedWrong"] == 0 and seen["typed"] == "2.25"
    assert len(seen["asked"]) == 2 and seen["asked"][0].endswith("→ 2.25")
    assert after == {**before, "fee_basis_points": 225, "grant_microcredits": 12_500_000}
    assert_clean(seen)
