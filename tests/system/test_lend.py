"""A lender that is started again: what it enlisted with counts.

covers peer/peer.c
"""
import json
import os
import subprocess

import pytest
from serving import HUNG_S, PROGRAM, Market, is_built_with


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender")
    yield market
    assert market.stop() == 0


def lend(folder, *options):
    """Runs the daemon until it is welcome; what it logged."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [PROGRAM, "lend", "--no-watch", "--state-dir", str(folder), "--ready-fd", str(write_end),
         *map(str, options)], pass_fds=[write_end], stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        line = ready.readline()
    process.terminate()
    log = process.communicate(timeout=HUNG_S)[1]
    assert line and json.loads(line)["ready"] and process.returncode == 0, log
    return log


@pytest.mark.skipif(is_built_with("libtsan"), reason="sandboxes cannot run it")
def test_a_restart_lends_what_was_enlisted(souk, market, tmp_path):
    souk("account", "open", "--name", "ada", "--server", market.url)
    command = souk("machines", "add").stdout.split()
    folder = tmp_path / "lend"
    first = lend(folder, *command[2:], "--cores", "0.25", "--memory", "256MiB")
    assert "cores_milli=250 " in first and "offer_kept" not in first
    again = lend(folder)
    assert "cores_milli=250 ram_bytes=268435456" in again and "offer_kept" not in again
    # The same command as the first time: its code is used up, and not needed.
    same = lend(folder, *command[2:])
    assert "cores_milli=250 " in same
    half = lend(folder, "--cores", "50%")
    assert "enlisted_cores_milli=250" in half
    assert f"cores_milli={len(os.sched_getaffinity(0)) * 500} " in half  # of the machine, not of one core
    refused = souk("lend", "--state-dir", tmp_path / "other", *command[2:], code=5)
    assert "souk machines add" in refused.stderr
