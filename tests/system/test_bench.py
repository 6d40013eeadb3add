"""The benches run, short, and say what they must.

covers cli/bench.c, cli/command_bench_ledger.c, server/bench_ledger.c, store/store_raw.c
covers cli/command_bench_market.c, server/bench_market.c
covers cli/command_bench_lenders.c, peer/bench_lenders.c
covers cli/command_bench_exchange.c, exchange/bench_exchange.c
covers cli/command_bench_wan.c, exchange/bench_wan.c, exchange/bench_wan_host.c, exchange/bench_wan_range.c,
covers exchange/bench_wire.c
covers cli/command_bench_jobnet.c, peer/bench_jobnet.c, peer/bench_jobnet_bare.c, peer/bench_jobnet_end.c
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from ranks import HUNG_JOB_S
from serving import HUNG_S, PROGRAM
from training import needs_tun

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench/lending"))
import begin  # noqa: E402 -- found through the line above
import crowd  # noqa: E402 -- found through the line above

LEDGER_FIGURES = {
    "cpu_us_per_transfer", "ratio_to_raw_sqlite", "transfers_per_s", "p50_ms", "p99_ms",
    "batch_mean", "raw_transfers_per_s", "raw_cpu_us_per_transfer", "audit_entries_per_s",
    "audit_cpu_us_per_entry"}


def test_the_ledger_is_measured_and_leaves_nothing_behind(souk, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = souk("bench", "ledger", "--dir", folder, "--rounds", 2, "--round", "200ms", "--json")
    figures = json.loads(done.stdout)
    assert figures.keys() == LEDGER_FIGURES and all(value > 0 for value in figures.values())
    assert figures["p50_ms"] <= figures["p99_ms"]
    assert not list(folder.iterdir())


def test_a_folder_that_is_not_there_is_refused(souk, tmp_path):
    assert "make a folder" in souk("bench", "ledger", "--dir", tmp_path / "no", code=3).stderr


def test_matching_is_measured_with_every_figure_the_goals_name(souk):
    figures = json.loads(souk("bench", "market", "--offers", 20000, "--jobs", 2000, "--json").stdout)
    assert {"placements_per_s", "decision_p99_us", "bytes_per_offer", "growth"} <= figures.keys()
    assert all(value > 0 for value in figures.values())
    assert figures["placed_share"] > 0.9 and figures["leases_per_job"] > 2
    assert figures["decision_p50_us"] <= figures["decision_p99_us"] <= figures["decision_max_us"]


@needs_tun
def test_the_job_network_is_measured_beside_plainer_ways(souk):
    figures = json.loads(souk("bench", "jobnet", "--rounds", 1, "--round", "200ms", "--json").stdout)
    assert {"jobnet_ratio", "jobnet_rtt_added_ms", "jobnet_ratio_to_copy"} <= figures.keys()
    assert all(figures[f"{way}_mb_per_s"] > 0 and figures[f"{way}_rtt_ms"] > 0
               for way in ("jobnet", "bare", "copy", "plain"))


@needs_tun
@pytest.mark.parametrize("servers", [1, 2])
def test_a_wide_area_network_is_measured_and_lets_workers_compute_on(souk, servers):
    figures = json.loads(souk("bench", "wan", "--workers", 2, "--servers", servers, "--parameters", 100000, "--mbit", 20,
                              "--server-mbit", 20, "--rtt", "40ms", "--step", "20ms", "--alone", "200ms", "--round", "8s",
                              "--json").stdout)
    assert figures["pushes_per_worker"] > 1 and figures["steps_per_push"] >= 1
    assert figures["commit_ms"] >= 40  # a push and its answer are on the way for an RTT at least
    assert 0 < figures["line_share"] <= 1.1 and 0 < figures["bytes_per_parameter"] <= 4.1
    assert figures["compute_kept"] <= figures["steps_kept"]


def test_a_codec_that_does_not_exist_is_refused(souk):
    assert "no way to compress" in souk("bench", "wan", "--compress", "zip", code=2).stderr


def test_push_and_pull_are_measured_over_all_kinds_of_links(souk):
    figures = json.loads(souk("bench", "exchange", "--mb", 4, "--workers", 2, "--rounds", 1, "--round", "50ms",
                              "--json").stdout)
    assert all(figures[f"{way}_mb_per_s"] > 0 and figures[f"{way}_cpu_s_per_gb"] > 0
               for way in ("sealed", "tls", "plain"))


def test_a_crowd_of_lenders_takes_leases_and_is_paid(tmp_path):
    figures = crowd.measure(os.path.abspath(PROGRAM), tmp_path, 20, seconds=12, settle_s=1)  # clock: measures two heartbeats
    assert figures["crowd_leases"] == 4 and figures["server_cpu_percent"] > 0
    assert figures["crowd_heartbeats"] > 20 and figures["crowd_meters"] >= 4


def test_the_start_of_a_lease_is_measured_warm_and_cold(tmp_path):
    figures = begin.measure(os.path.abspath(PROGRAM), tmp_path, 1)
    assert figures["lease_start_ms_p50"] > 0 and figures["lease_start_cold_ms_p50"] > 0


@pytest.mark.skipif("SOUK_DATA" not in os.environ, reason="SOUK_DATA names no folder with real data")
def test_the_runs_of_axon_are_measured_from_submission_to_end():
    bench = pathlib.Path(__file__).parents[2] / "bench/axon.py"
    done = subprocess.run([sys.executable, str(bench), "--program", PROGRAM, "--rows", "2000", "--nodes", "1", "2",
                           "--repeats", "1", "--part", "rows", "--json"],
                          capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 0, done
    figures = json.loads(done.stdout)
    overhead = figures["overhead_ms"]
    assert 0 < overhead["median"] <= overhead["max"] and overhead["by_rows"].keys() == {"2000"}
    assert figures["best_nodes"]["2000"] in (1, 2) and figures["accuracy"]["2000"] > 0.5


def test_recovery_is_measured_of_a_parameter_server_that_goes_on_from_its_checkpoint():
    bench = pathlib.Path(__file__).parents[2] / "bench/recover.py"
    done = subprocess.run([sys.executable, str(bench), "--program", PROGRAM, "--policies", "", "--parts", "process",
                           "--interval", "3", "--workers", "1", "--json"], capture_output=True, text=True, timeout=HUNG_JOB_S)
    assert done.returncode == 0, done
    figures = json.loads(done.stdout)
    assert figures["ps_resume_ms"] > 0 and figures["ps_lost_ms"] > 0
    assert figures["cases"].keys() == {"process"} and figures["replacement_ms"] is None
