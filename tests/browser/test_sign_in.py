"""Signing up, out and in by the page's form, in a real browser over a real market."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from serving import Market, audit  # noqa: E402


def sign_up_out_and_in(market, folder):
    token = market.sign_up("bob")
    done = subprocess.run(["node", str(HERE / "sign_in.mjs"), market.url, str(folder), token],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_person_signs_up_out_and_in(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    try:
        seen = sign_up_out_and_in(market, tmp_path)
        found = market.get("/v1/accounts?name=ada", market.operator_token()).json["items"]
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert "name or the password is wrong" in seen["unknown"]
    assert seen["wayOnce"] == "Open an account"
    assert seen["isShortStopped"] and "tried first" in seen["common"]
    assert seen["name"] == "ada" and found[0]["has_password"]
    assert seen["cookie"] == {"httpOnly": True, "sameSite": "Strict"} and seen["scriptsSee"] == ""
    assert "signed in as ada" in seen["asked"]
    assert seen["nameAfterNo"] == "ada" and seen["nameAfterYes"] == "bob"
    assert seen["lend"].startswith(f"souk lend --server {market.url} --code souk_enrol_")
    assert seen["isWithinPhone"]
    assert seen["foreign"] == [] and seen["errors"] == [], seen
