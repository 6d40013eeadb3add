"""Jobs that bring packages: wheels that are installed at the lender.

covers peer/tenancy_image.c, peer/tenancy_packages.c, worker/packages_main.c, client/wheels.c
"""
import os
import pathlib
import tempfile

import pytest

from wheels import log_of, open_place, run, wheel


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with open_place(tmp_path_factory.mktemp("install")) as opened:
        yield opened


SHOW = """exec python3 -c '
import os, sys, one, two
print(one.WHERE, two.NAME, sys.prefix, os.environ["VIRTUAL_ENV"])
try: open("/packages/x", "w")
except OSError as error: print("read-only", error.errno)'"""


@pytest.fixture
def elsewhere(tmp_path):
    """A folder on another file system than the temporary files, where there is one."""
    shared = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else tmp_path) as made:
        yield pathlib.Path(made)


def test_wheels_are_installed_once_and_are_read_only(place, tmp_path, elsewhere):
    one, two = wheel(elsewhere, "one"), wheel(tmp_path / "more", "two")
    before = log_of(place).count("packages_installed")
    done = run(place, tmp_path / "job", wheels=[str(one), str(two.parent)], run=SHOW)
    assert done.returncode == 0, (done.out, done.err)
    assert "souk: installing 2 packages" in done.log, done.log
    assert "/packages/lib/python3" in done.log and "one.py two /packages /packages" in done.log, done.log
    assert "read-only 30" in done.log, done.log
    # The same wheels, fetched at another time, are the same packages.
    os.utime(one, (1, 1))
    done = run(place, tmp_path / "again", wheels=[str(one), str(two.parent)], run=SHOW)
    assert done.returncode == 0 and "read-only 30" in done.log, done.words
    assert "installing" not in done.log, done.log
    assert log_of(place).count("packages_installed") == before + 1


def test_a_wheel_of_another_platform_fails_the_job_with_pips_words(place, tmp_path):
    foreign = wheel(tmp_path, "foreign", tag="cp27-cp27m-win32")
    done = run(place, tmp_path / "job", wheels=[str(foreign)], run="echo ran")
    assert done.returncode != 0 and "ran" not in done.log.split(), (done.out, done.err)
    assert "the packages: pip: ERROR: foreign-1.0-cp27-cp27m-win32.whl is not a supported wheel" in done.words, done.words
    assert "souk: installing 1 package" in done.log and "not a supported wheel" in done.log, done.log


def test_what_cannot_be_meant_is_refused_before_anything_is_sent(place, tmp_path):
    one = str(wheel(tmp_path, "one"))
    for job, reason in [
            ({"wheels": [one], "resources": {"install": "none"}}, "the job brings packages: leave it out"),
            ({"wheels": [str(tmp_path / "not-there.whl")]}, "not-there.whl"),
            ({"wheels": [str(tmp_path / "job" / "job.yaml")]}, "is no wheel"),
            ({"requirements": str(tmp_path / "none.txt")}, "none.txt"),
            ({"wheels": [one], "resources": {"image_id": "x.tar"}}, "put them into the image")]:
        done = run(place, tmp_path / "job", **job)
        assert done.returncode != 0 and reason in done.words, (reason, done.words)
