"""The page's units by Node's test runner: each NAME.test.mjs beside the file it tests."""
import pathlib
import shutil
import subprocess

import pytest
from serving import HUNG_S

WEB = pathlib.Path(__file__).parents[2] / "web"


@pytest.mark.skipif(not shutil.which("node"), reason="no Node.js: apt-get install nodejs npm")
@pytest.mark.skipif(not (WEB / "node_modules/esbuild").is_dir(), reason="no web/node_modules: tools/build-web")
def test_the_pages_units():
    done = subprocess.run(["node", str(WEB / "scripts/test.mjs")], capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout, done.stdout
