"""The bench of the page runs, short, and says what it must."""
import json
import pathlib
import subprocess
import sys

import browsing  # noqa: F401 -- makes the next one found
from serving import PROGRAM


def test_the_page_is_measured_with_every_figure_the_goals_name(tmp_path):
    bench = pathlib.Path(__file__).parents[2] / "bench/page.py"
    done = subprocess.run([sys.executable, str(bench), "--program", PROGRAM, "--workers", "3", "--minutes", "0.05",
                           "--warm", "1", "--loads", "1", "--json"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done
    figures = json.loads(done.stdout)
    assert 10_000 < figures["first_load_bytes"] <= 90_000 and figures["interactive_ms"] > 0
    assert 0 < figures["job_page_core_share"] < 2 and figures["heap_mb"] > 0
    assert "job_page_heap_growth_mb" in figures
    assert figures["events_per_s"] > 20  # 3 workers and the parameter server, ten a second each; less what a busy machine drops
