"""souk.gym under Gymnasium's own checker, which comes from PyPI into a venv (tests/frameworks/venv)."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "system"))
from ranks import HUNG_JOB_S  # noqa: E402 -- found through the line above

PROGRAM = pathlib.Path(os.environ.get("SOUK_PROGRAM", ROOT / "build" / "release" / "souk")).resolve()


def test_gymnasium_s_checker_finds_nothing():
    venv = subprocess.run([HERE / "venv", "gymnasium"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    done = subprocess.run([f"{venv}/bin/python", HERE / "gym_check.py", PROGRAM], text=True, capture_output=True,
                          timeout=HUNG_JOB_S, env={**os.environ, "PYTHONPATH": str(ROOT / "python"),
                                                   "SOUK_LIBRARY": str(PROGRAM.parent / "libsouk.so.0")})
    assert done.returncode == 0, done.stderr
    assert "gymnasium is content" in done.stdout
