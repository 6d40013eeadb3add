"""Jobs that bring packages: requirements, wheels that mean harm, and what ends in their midst.

covers peer/tenancy_packages.c, peer/image_cache.c, worker/packages.c, worker/packages_main.c, client/wheels.c, client/pip.c
"""
import fcntl
import os

import pytest

from serving import HUNG_S
from training import wait_for
from wheels import end, log_of, open_place, run, start, wheel


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with open_place(tmp_path_factory.mktemp("install")) as opened:
        yield opened


def test_what_requirements_name_is_fetched_here(place, tmp_path):
    wheel(tmp_path / "shelf", "asked", {
        "asked.py": "from needed import NAME", "asked_tool.py": "def main(): print('tool ran')",
        "asked-1.0.dist-info/entry_points.txt": "[console_scripts]\nasked-tool = asked_tool:main\n"})
    wheel(tmp_path / "shelf", "needed")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"--no-index\n--find-links {tmp_path}/shelf\nasked==1.0\nneeded\n")
    done = run(place, tmp_path / "job", requirements=str(requirements),
               run="asked-tool && python3 -c 'import asked; print(asked.NAME)'")
    assert done.returncode == 0, (done.out, done.err)
    assert "tool ran" in done.log and "needed" in done.log, done.log
    requirements.write_text(f"--no-index\n--find-links {tmp_path}/shelf\nlacking==2.0\n")
    done = run(place, tmp_path / "job", requirements=str(requirements))
    assert done.returncode != 0 and "requirements: pip: ERROR: No matching distribution found for lacking==2.0" \
        in done.words, done.words


def spoil(path):
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x03\x04") + 40
    data[at:at + 20] = bytes(20)
    path.write_bytes(data)
    return path


WRONG = {
    "corrupt": lambda folder: spoil(wheel(folder, "corrupt", {"corrupt.py": "X = 1\n" * 1000})),
    "no zip": lambda folder: folder.mkdir() or (folder / "none-1.0-py3-none-any.whl").write_bytes(b"no zip") and
    folder / "none-1.0-py3-none-any.whl",
}
REASONS = {"corrupt": "while decompressing", "no zip": "is invalid"}


@pytest.mark.parametrize("what", WRONG)
def test_a_wheel_that_cannot_be_installed_fails_the_job_with_pips_words(place, tmp_path, what):
    done = run(place, tmp_path / "job", wheels=[str(WRONG[what](tmp_path / "wheels"))], run="echo ran")
    assert done.returncode != 0 and "ran" not in done.log.split(), (done.out, done.err)
    assert "the packages: pip:" in done.words and REASONS[what] in done.words, done.words
    assert "souk: installing 1 package" in done.log, done.log


def test_a_bomb_is_stopped_at_what_is_kept_for_packages(place, tmp_path):
    zeros = bytes(24 << 20)
    bomb = wheel(tmp_path / "wheels", "bomb", {f"bomb/{i}.bin": zeros for i in range(4)})
    assert bomb.stat().st_size < 1 << 20
    done = run(place, tmp_path / "job", wheels=[str(bomb)], run="echo ran")
    assert done.returncode != 0 and "ran" not in done.log.split(), (done.out, done.err)
    assert "64 MiB" in done.words and "kept for images and packages here" in done.words, done.words
    wait_for("its folders to go", lambda: not os.listdir(place[2] / "first" / "leases"))


def test_leases_that_come_together_and_a_daemon_that_dies(place, tmp_path):
    """The first installs, the second waits for it; and the daemon's end is no end of theirs."""
    market, token, folder, lender = place
    many = wheel(tmp_path, "many", {f"many/m{i}.py": "\n".join(f"def f{k}(): return {k}" for k in range(60))
                                    for i in range(600)} | {"many/__init__.py": "N = 600"})
    job = {"wheels": [str(many)], "run": "exec python3 -c 'import many; print(\"many\", many.N)'",
           "resources": {"cpus": 0.8, "memory": 0.2}}
    before = log_of(place).count("packages_installed")
    both = [start(place, tmp_path / name, name=name, **job) for name in ("a", "b")]
    # On a busy machine it may be over between two looks; then the daemon's end comes after it.
    wait_for("the installation", lambda: is_making(folder / "first" / "images") or
             log_of(place).count("packages_installed") > before, step=0.02)
    lender.process.kill()
    lender.process.wait(HUNG_S)
    lender.log.close()
    lender.start()
    for process in both:
        end(place, process)
        assert process.returncode == 0 and "many 600" in process.log, (process.out, process.err)
    assert log_of(place).count("packages_installed") == before + 1


def is_making(folder):
    try:
        return any(name.startswith(".making-") and is_locked(folder / name) for name in os.listdir(folder))
    except FileNotFoundError:
        return False  # not there yet, or just done


def is_locked(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
