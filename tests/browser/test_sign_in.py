"""Signing up, out and in by the page's form, in a real browser over a real market."""
from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market, audit


def test_a_person_signs_up_out_and_in(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    try:
        with Walk("sign_in.mjs", market.url, tmp_path, market.sign_up("bob")) as walk:
            seen = walk.end()
        found = market.get("/v1/accounts?name=ada", market.operator_token()).json["items"]
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert seen["beforeRefusals"] == []
    assert "name or the password is wrong" in seen["unknown"]
    assert seen["typedAfterReload"] == "ada"
    assert seen["name"] == "ada" and found[0]["has_password"]
    assert seen["cookie"] == {"httpOnly": True, "sameSite": "Strict"} and seen["scriptsSee"] == ""
    assert "signed in as ada" in seen["asked"]
    assert seen["nameAfterNo"] == "ada" and seen["nameAfterYes"] == "bob"
    assert seen["lend"].startswith(f"souk lend --server {market.url} --code souk_enrol_")
    assert seen["copied"] == seen["lend"]
    assert_clean(seen)
