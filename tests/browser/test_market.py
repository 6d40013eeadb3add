"""The market screen in a real browser, over a market with real lenders that restarts."""
from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from test_prices import offset_that_ends_a_slot_in
from training import running, wait_for


def shown(name):
    return name.split(" · ")[0]


def assert_sorted(seen, machines):
    is_down = seen["way"] == "descending"
    for names, is_turned in ((seen["sorted"], False), (seen["turned"], True)):
        free = [machines[shown(name)]["free"]["cores_milli"] for name in names]
        assert free == sorted(free, reverse=is_down != is_turned) and len(set(free)) > 1, names


def test_the_market_is_looked_at(tmp_path):
    # Begin a new slot, so that none ends during the test.
    slots = ("--slot-offset", offset_that_ends_a_slot_in(5 * 3600_000))
    with running(tmp_path, "--no-local-lender", *slots, "--listen", f"127.0.0.1:{own_port()}") as (market, _, token, _lenders):
        def measured():
            return [machine for machine in market.get("/v1/machines", token).json["items"]
                    if machine["state"] == "online" and machine["probe"]["rtt_us"] > 0]
        wait_for("three round trips", lambda: len(measured()) == 3)
        machines = {machine["name"]: machine for machine in measured()}
        # One gives its unsold time away, another is paused.
        offer = market.get(f"/v1/machines/{machines['lender-1']['id']}/offers", token).json["items"][0]["id"]
        assert market.call("PATCH", f"/v1/offers/{offer}", {"spare": True}, token).status == 200
        assert market.post(f"/v1/machines/{machines['lender-0']['id']}/pause", {"for_ms": 3600_000}, token).status == 200
        wait_for("the pause", lambda: any(machine["yield"] == "paused_remotely" for machine in measured()))
        machines = {machine["name"]: machine for machine in measured()}
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("market.mjs", code["url"], tmp_path) as walk:
            walk.expect("stop")
            market.stop()
            walk.answer()
            walk.expect("start")
            market.start()
            wait_for("three machines", lambda: len(measured()) == 3)
            walk.answer()
            seen = walk.end()
        prices = market.get("/v1/prices").json
        story = market.get(f"/v1/prices/{prices['slot'].replace('/', '%2F')}").json
    assert "until" in seen["until"], seen["until"]
    assert_sorted(seen, machines)
    assert "sort=name" in seen["sortAddress"]
    assert [shown(name) for name in seen["spare"]] == ["lender-1"] and "spare time" in seen["spare"][0]
    assert [shown(name) for name in seen["paused"]] == ["lender-0"]
    assert {shown(name) for name in seen["free"]} == set(machines) - {"lender-0"}
    assert [shown(name) for name in seen["filtered"]] == ["lender-1"] and "name=lender-1" in seen["address"]
    assert seen["nameAfterReload"] == "lender" and seen["typedAfterRestart"] == "lender-"
    shared = seen["shared"]
    assert shared["name"] == "lender" and shared["way"] == "speed" and shared["names"] == shared["here"]
    assert seen["sideways"] == [] and seen["lines"] == [True] * 3
    assert [shown(name) for name in seen["onPhone"]] == sorted(machines)
    assert seen["running"] == "now"
    assert seen["story"] == story["resources"][0]["explanation"].strip()
    assert "GiB of memory" in seen["memory"]
    assert seen["dots"] == 3 and "up to 1 ms" in seen["rings"]
    assert f"{prices['core_hour_microcredits'] / 1e6:g}" in seen["figures"]
    assert_clean(seen)
