"""Signing up, out and in by the page's form in a real browser, refused attempts, and sessions that end."""
from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit

PASSWORD = "correct horse battery"


def used_code(market, token):
    code = market.post("/v1/account/page-codes", {}, token).json["code"]
    assert market.post("/v1/sessions", {"code": code, "cookie": False}).status == 201
    return code


def end_sessions(market):
    """Ends all of eve's other sessions, as if from another browser."""
    answer = market.post("/v1/sessions", {"name": "eve", "password": PASSWORD, "cookie": False})
    assert answer.status == 201, answer
    token = answer.json["token"]
    for session in market.get("/v1/sessions", token).json["items"]:
        if not session["is_current"]:
            assert market.call("DELETE", f"/v1/sessions/{session['id']}", None, token).status == 204


def test_a_person_signs_up_out_and_in_and_is_told_what_is_refused(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--sign-ins-per-10-minutes", "8")
    try:
        carl = market.post("/v1/accounts", {"name": "carl", "password": PASSWORD}).json["token"]
        operator = market.operator_token()
        invite = market.post("/v1/invites", {}, operator).json["invite"]
        with Walk("sign_in.mjs", market.url, tmp_path, market.sign_up("bob"), used_code(market, carl), invite) as walk:
            for _ in range(2):
                walk.expect("end sessions")
                end_sessions(market)
                walk.answer()
            seen = walk.end()
        ada, eve = (market.get(f"/v1/accounts?name={name}", operator).json["items"][0] for name in ("ada", "eve"))
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert seen["beforeRefusals"] == []
    assert "name or the password is wrong" in seen["unknown"]
    assert seen["typedAfterReload"] == "ada"
    assert seen["name"] == "ada" and ada["has_password"]
    assert seen["cookie"] == {"httpOnly": True, "sameSite": "Strict"} and seen["scriptsSee"] == ""
    assert "signed in as ada" in seen["asked"]
    assert seen["nameAfterNo"] == "ada" and seen["nameAfterYes"] == "bob"
    assert seen["lend"].startswith(f"souk lend --server {market.url} --code souk_enrol_")
    assert seen["copied"] == seen["lend"]
    # Refused attempts, and sessions that end.
    assert seen["kept"] == "souk_invite_0123abcd" and seen["password"] == ""
    assert eve["grant"] == "given"
    assert seen["typed"] == ["carl", "for the <i>night</i>"] and seen["typedByAnother"] == ""
    assert seen["secret"] == "opens the bucket" and seen["secretByAnother"] == ""
    assert seen["isCalledEnded"] == 0
    assert "too many requests" in seen["limited"]
    assert_clean(seen)
