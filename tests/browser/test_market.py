"""The market screen in a real browser, over a market with real lenders that restarts."""
from browsing import Walk, assert_clean, free_port, screens
from training import running, wait_for


def test_the_market_is_looked_at(tmp_path):
    with running(tmp_path, "--no-local-lender", "--listen", f"127.0.0.1:{free_port()}") as (market, _, token, _lenders):
        def measured():
            return [machine for machine in market.get("/v1/machines", token).json["items"]
                    if machine["state"] == "online" and machine["probe"]["rtt_us"] > 0]
        wait_for("three round trips", lambda: len(measured()) == 3)
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("market.mjs", code["url"], screens(tmp_path)) as walk:
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
    assert seen["sorted"][:2] == ["lender-0", "lender-1"] and len(seen["sorted"]) == 3
    assert seen["filtered"] == ["lender-1"] and "name=lender-1" in seen["address"]
    assert seen["stateAfterReload"] == "free" and seen["typedAfterRestart"] == "lender-"
    assert seen["running"] == "now"
    assert seen["story"] == story["resources"][0]["explanation"].strip()
    assert "GiB of memory" in seen["memory"]
    assert seen["dots"] == 3 and "up to 1 ms" in seen["rings"]
    assert f"{prices['core_hour_microcredits'] / 1e6:g}" in seen["figures"]
    assert_clean(seen)
