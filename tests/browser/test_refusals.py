"""What the door refuses, in a real browser: used links, taken names, wrong invitations, too many tries, and sessions that end."""
from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit

PASSWORD = "correct horse battery"


def test_refusals_at_the_door_and_a_session_that_ends(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--sign-ins-per-10-minutes", "12")
    try:
        bob = market.post("/v1/accounts", {"name": "bob", "password": PASSWORD}).json["token"]
        used = market.post("/v1/account/page-codes", {}, bob).json["code"]
        assert market.post("/v1/sessions", {"code": used, "cookie": False}).status == 201
        invite = market.post("/v1/invites", {}, market.operator_token()).json["invite"]

        def end_sessions():
            answer = market.post("/v1/sessions", {"name": "ada", "password": PASSWORD, "cookie": False})
            assert answer.status == 201, answer
            token = answer.json["token"]
            for session in market.get("/v1/sessions", token).json["items"]:
                if not session["is_current"]:
                    assert market.call("DELETE", f"/v1/sessions/{session['id']}", None, token).status == 204

        with Walk("refusals.mjs", market.url, tmp_path, used, invite) as walk:
            for _ in range(2):
                walk.expect("end sessions")
                end_sessions()
                walk.answer()
            seen = walk.end()
        opened = market.get("/v1/accounts?name=ada", market.operator_token()).json["items"]
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert seen["kept"] == "souk_invite_0123abcd" and seen["password"] == ""
    assert opened[0]["grant"] == "given"
    assert seen["typed"] == ["bob", "for the <i>night</i>"] and seen["typedByAnother"] == ""
    assert seen["secret"] == "opens the bucket" and seen["secretByAnother"] == ""
    assert seen["isCalledEnded"] == 0
    assert "too many requests" in seen["limited"]
    assert_clean(seen)
