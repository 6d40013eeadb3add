"""The Python package as pip installs it.

covers library/souk_library.c
"""
import pathlib
import subprocess
import sys

import pytest

from program import ROOT
from serving import PROGRAM, is_built_with

LIBRARY = pathlib.Path(PROGRAM).resolve().parent / "libsouk.so.0"
if is_built_with("libasan") or is_built_with("libtsan"):
    pytest.skip("a sanitizer has to be loaded before Python itself", allow_module_level=True)


def test_pip_installs_it_without_network_or_compiler(tmp_path):
    # Debian's own pip, from its wheel: to install it into the venv would take most of the time.
    (pip,) = pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    bare = {"PATH": f"{tmp_path}/venv/bin", "HOME": str(tmp_path), "SOUK_LIBRARY": str(LIBRARY),
            "PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([tmp_path / "venv/bin/python", "-m", "pip", "install", "-q", "--no-index", ROOT / "python"],
                   env={**bare, "PYTHONPATH": str(pip)}, check=True)
    told = subprocess.run([tmp_path / "venv/bin/python", "-c",
                           "import souk, os; print(souk.library_version(), souk.__version__, os.listdir(os.path.dirname(souk.__file__)))"],
                          cwd=tmp_path, env=bare, capture_output=True, text=True, check=True).stdout
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert told.startswith(f"{version} {version} ") and "'py.typed'" in told
