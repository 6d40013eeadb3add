"""The Internet for jobs where the owner does not permit it: refused at every step, with the reason.

covers peer/lent.c
"""
import os
import subprocess

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for


def souk(market, token, folder, *arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=HUNG_S,
                          stdin=subprocess.DEVNULL,
                          env={**os.environ, "SOUK_SERVER": market.url, "SOUK_TOKEN": token, "NO_COLOR": "1",
                               "XDG_CONFIG_HOME": str(folder / "config")})


def test_open_is_refused_by_the_daemon_and_no_job_is_placed_by_it(tmp_path):
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    for wrong in (("--resolver", "192.168.1.1"), ("--closed-networks", "fe80::/10"), ("--open-rate", "much")):
        refused = souk(market, lender_token, tmp_path, "lend", "--network", "open", *wrong,
                       "--state-dir", str(tmp_path / "none"))
        assert refused.returncode != 0 and wrong[0] in refused.stderr, refused
    lender = Lender(market, lender_token, tmp_path / "first", "first")
    try:
        wait_for("the machine", lambda: any(m["state"] == "online" and m["name"] == "first" for m in
                                            market.get("/v1/machines", token).json["items"]))
        [machine] = [m for m in market.get("/v1/machines", token).json["items"] if m["name"] == "first"]
        assert machine["probe"]["network"] == "job" and machine["probe"]["images"] is False
        shown = souk(market, token, tmp_path, "machines", "show", "first")
        assert "network job, no images" in shown.stdout, shown
        [offer] = [o for o in market.get("/v1/offers", lender_token).json["items"] if o["machine_name"] == "first"]
        changed = market.call("PATCH", f"/v1/offers/{offer['id']}", {"network": "open"}, lender_token)
        assert changed.status == 200  # what is offered is one thing, what the daemon permits another
        run = ("run", "--cpus", "0.1", "--memory", "0.1", "-y")
        done = souk(market, token, tmp_path, *run, "--network", "open", "--", "true")
        assert done.returncode == 7 and 'the network "open"' in done.stderr, done
        done = souk(market, token, tmp_path, *run, "--network", "open", "--wait", "-d", "--", "true")
        assert done.returncode == 0, done
        explained = souk(market, token, tmp_path, "job", "explain", done.stdout.strip())
        assert 'the network "open"' in explained.stdout, explained
        done = souk(market, token, tmp_path, *run, "--", "true")
        assert done.returncode == 0, done
    finally:
        lender.stop()
        market.stop()


def test_a_machine_that_permits_no_network_gets_no_job_that_wants_one(tmp_path):
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, tmp_path / "first", "first", options=("--network", "none"))
    try:
        wait_for("the machine", lambda: any(m["state"] == "online" and m["name"] == "first" for m in
                                            market.get("/v1/machines", token).json["items"]))
        done = souk(market, token, tmp_path, "run", "--cpus", "0.1", "--memory", "0.1", "-y", "--network", "job",
                    "--", "true")
        assert done.returncode == 7 and "could not start now" in done.stderr, done
    finally:
        lender.stop()
        market.stop()
