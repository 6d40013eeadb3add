"""The page's frame and the settings in a real browser: first load, navigation, deep links, groups, password, sessions, tokens and
the end of an account, over a market that restarts."""
import time

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit
from training import submit

MONTH_MS = 30 * 86_400_000
SLOW_MS = 60_000  # clock: an answer has the market's time of sending
HTML = "<script>alert(1)</script><b>x</b>"


FIRST_LOAD_MAX = 90_000


def in_the_frame(walk, market, token):
    """Stops the market for a while, and submits a job before the page reconnects."""
    walk.expect("stop")
    market.stop()
    walk.answer()
    walk.expect("start")
    market.start()
    submit(market, token, 1)
    walk.answer()


def assert_framed(seen):
    paths = dict(seen["first"]["files"])
    assert "/" in paths and any(path.endswith(".js") for path in paths), paths
    assert 10_000 < sum(paths.values()) <= FIRST_LOAD_MAX, paths
    assert seen["theme"] == "dark" and seen["themeAfterReload"] == "dark"
    assert "no job" in seen["unknownJob"] or "not" in seen["unknownJob"]
    assert seen["firstTab"] == "Skip to the content" and seen["skippedTo"] == "content"
    assert seen["state"] == "pending"
    print(f"first load {sum(paths.values())} bytes, shown after {seen['first']['at_ms']:.0f} ms")


def in_groups(walk, market, ada, bob, eve):
    """Bob joins by the code from the page; then ada joins eve's group for a while."""
    joined = market.post("/v1/account/group", {"code": walk.hear()}, bob)
    walk.answer()
    walk.expect("join")
    walk.answer(market.post("/v1/account/group/codes", {}, eve).json["code"])
    walk.expect("out")
    mine = market.get("/v1/account", ada).json["id"]
    assert market.call("DELETE", f"/v1/account/group/members/{mine}", None, eve).status == 204
    walk.answer()
    return joined


def test_the_frame_groups_password_tokens_sessions_and_the_end(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--listen", f"127.0.0.1:{own_port()}")
    try:
        first, bob, eve, fay = (market.sign_up(name) for name in ("ada", "bob", "eve", "fay"))
        assert market.post("/v1/groups", {"name": "taken"}, eve).status == 201
        code, anothers = (market.post("/v1/account/page-codes", {}, whose).json for whose in (first, fay))
        other = None
        begun_ms = time.time() * 1000

        def sign_in():
            answer = market.post("/v1/sessions", {"name": "ada", "password": "a first long password", "cookie": False})
            assert answer.status == 201, answer
            return answer.json["token"]

        with Walk("settings.mjs", code["url"], tmp_path, anothers["url"]) as walk:
            in_the_frame(walk, market, fay)
            joined = in_groups(walk, market, first, bob, eve)
            for _ in range(2):
                walk.expect("sign in")
                other = sign_in()
                walk.answer()
                walk.expect("ended")
                walk.answer(str(market.get("/v1/account", other).status))
            walk.restart(market)
            seen = walk.end()
        gone = market.get("/v1/accounts?name=ada", market.operator_token()).json["items"]
        refused = market.get("/v1/account", first).status
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert_framed(seen)
    assert joined.status == 201 and seen["groupTyped"] == "lab"
    assert seen["members"] == ["ada", "bob"] and seen["joined"] == ["ada", "eve"] and seen["buttons"] == 0
    assert seen["endedByButton"] == "401" and seen["endedByPassword"] == "401"
    assert seen["postsWrong"] == 0 and seen["typed"] == HTML and seen["tokenName"] == HTML
    assert seen["token"].startswith("souk_account_") and seen["copied"] == seen["token"]
    lasts_ms = seen["expires_ms"] - begun_ms
    assert isinstance(seen["expires_ms"], int) and MONTH_MS - SLOW_MS < lasts_ms < MONTH_MS + time.time() * 1000 - begun_ms
    assert seen["ends"] == "in 30 days" and "day ago" not in seen["used"] and "days ago" not in seen["used"], seen["used"]
    assert seen["works"] == 200 and seen["refused"] == 401 and not seen["shownAgain"]
    assert gone == [] and refused == 401
    assert_clean(seen)
