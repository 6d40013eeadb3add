"""souk sim recommend and souk bench recommend: clusters recommended in virtual time.

covers cli/command_sim_recommend.c, cli/command_bench_recommend.c, bench/recommend.py
"""
import json
import os
import pathlib
import subprocess
import sys
from ranks import HUNG_JOB_S

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["SOUK_PROGRAM"]


def souk(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=HUNG_JOB_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_seed_gives_the_same_figures_again():
    asked = ["sim", "recommend", "--cases", "2", "--seed", "5", "--quiet"]
    first = json.loads(souk(*asked, "--json", "--all"))
    assert json.loads(souk(*asked, "--json", "--all", "--threads", "1")) == first
    assert first["cases"] == 2 and len(first["results"]) == 2
    for case in first["results"]:
        assert case["end"] in ("epochs", "target") and 0 <= case["trial_share"] < 0.3
        for cluster in case["clusters"]:
            assert cluster["low_s"] < cluster["expected_s"] < cluster["high_s"]
            assert cluster["workers"] >= 1 and cluster["time_s"] > 0
    shown = souk(*asked)
    assert "median_error" in shown and "at most 0.15" in shown


def test_the_papers_rules_stand_beside_auto():
    answer = json.loads(souk("sim", "recommend", "--paper", "--cases", "1", "--json"))
    rules = answer["results"][0]
    assert rules["time-opt"]["cluster"] == "6 m4.xlarge"
    assert rules["scala-opt"]["cost_micro"] < 0.4 * rules["time-opt"]["cost_micro"]
    assert answer["scala_saved_most"] >= 0.6


def test_a_whole_cloud_is_weighed_at_once():
    figures = json.loads(souk("bench", "recommend", "--types", "200", "--rounds", "3", "--json"))
    assert figures["search_cpu_ms"] > 0 and figures["clusters_considered"] > 200


def test_the_bench_prints_its_fields():
    done = subprocess.run([sys.executable, str(ROOT / "bench/recommend.py"), "--json", "--cases", "2",
                           "--paper-cases", "1", "--program", PROGRAM], capture_output=True, text=True, timeout=HUNG_JOB_S)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert {"median_error", "p90_error", "within_1_1", "trial_share", "search_cpu_ms",
            "scala_saved_most", "auto_no_dearer"} <= figures.keys()
