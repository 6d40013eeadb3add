"""The bench of the page runs, short, and says what it must."""
import json
import pathlib
import subprocess
import sys

from browsing import pytestmark  # noqa: F401 -- skips tests that cannot run, and sets the path for the next import
from ranks import HUNG_JOB_S
from serving import PROGRAM

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH / "page"))
import trend  # noqa: E402 -- found through the line above


def saw(at):
    """A curve that fills up and is thinned out: it moves, and does not grow."""
    return 4 + 0.2 * (at % 7) / 7


def test_what_fills_up_and_is_thinned_out_does_not_grow_and_what_leaks_does():
    level = [(at, saw(at)) for at in range(40)]
    assert abs(trend.growth(level)) < trend.noise(level) < 0.2
    one_apart = [(at, value + (3 if at == 39 else 0)) for at, value in level]  # the last minus the first would say 3
    assert abs(trend.growth(one_apart)) < 0.1
    leaking = [(at, value + 0.02 * at) for at, value in level]
    assert 0.6 < trend.growth(leaking) < 1 and trend.growth(leaking) > 5 * trend.noise(leaking)
    assert trend.growth([]) == trend.growth([(0, 1)]) == 0


def test_the_page_is_measured_with_every_figure_the_goals_name(tmp_path):
    done = subprocess.run([sys.executable, str(BENCH / "page.py"), "--program", PROGRAM, "--workers", "3", "--minutes", "0.05",
                           "--warm", "1", "--samples", "5", "--loads", "1", "--json"], capture_output=True, text=True, timeout=HUNG_JOB_S)
    assert done.returncode == 0, done
    figures = json.loads(done.stdout)
    assert 10_000 < figures["first_load_bytes"] <= 90_000 and figures["interactive_ms"] > 0
    assert 0 < figures["job_page_core_share"] < 2 and 0.5 < figures["kept_mb"] < 20 and 0.1 < figures["code_mb"] < 20
    assert len(figures["kept_by_sample_mb"]) == 5 and figures["noise_mb"] >= 0
    assert abs(figures["job_page_kept_growth_mb"]) < 1 and "job_page_code_growth_mb" in figures
    assert figures["events_per_s"] > 20  # 3 workers and the parameter server, ten a second each; less what a busy machine drops
