"""The page's frame in a real browser: navigation, colours, deep links, first load, and a market that restarts."""
from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit
from training import submit

FIRST_LOAD_MAX = 90_000


def test_the_frame_and_a_restart(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--listen", f"127.0.0.1:{own_port()}")
    try:
        token = market.sign_up("ada")
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("shell.mjs", code["url"], tmp_path) as walk:
            walk.expect("stop")
            market.stop()
            walk.answer()
            walk.expect("start")
            market.start()
            submit(market, token, 1)
            walk.answer()
            seen = walk.end()
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    paths = dict(seen["first"]["files"])
    assert "/" in paths and any(path.endswith(".js") for path in paths), paths
    assert 10_000 < sum(paths.values()) <= FIRST_LOAD_MAX, paths
    assert seen["theme"] == "dark" and seen["themeAfterReload"] == "dark"
    assert "no job" in seen["unknownJob"] or "not" in seen["unknownJob"]
    assert seen["firstTab"] == "Skip to the content" and seen["skippedTo"] == "content"
    assert seen["state"] == "pending"
    assert_clean(seen)
    print(f"first load {sum(paths.values())} bytes, shown after {seen['first']['at_ms']:.0f} ms")
