"""The page's units by Node's test runner: each NAME.test.mjs beside the file it tests."""
import pathlib
import subprocess


def test_the_pages_units():
    web = pathlib.Path(__file__).parents[2] / "web"
    done = subprocess.run(["node", str(web / "scripts/test.mjs")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout, done.stdout
