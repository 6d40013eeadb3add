"""What a borrower is told of a program of their own: what it prints as it prints it, and where to look when it fails.

covers cli/job_results.c, cli/job_view.c, cli/command_logs.c, worker/command_environment.c, peer/tenancy_end.c
"""
import json
import os
import subprocess

import pytest

from checkpoints import Place
from serving import PROGRAM
from training import needs_tun, wait_for


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("own"))
    try:
        for name in ("first", "second"):
            place.lend(name)
        yield place
    finally:
        place.stop()


def write(place, **fields):
    job = {"name": "own", "runtime": "command", "resources": {"cpus": 0.2, "memory": 0.2}, "run": "true",
           "market": {"max_run_time": "5m"}, **fields}
    (place.folder / "own.yaml").write_text(json.dumps(job))
    return str(place.folder / "own.yaml")


def test_what_python_prints_is_there_as_it_prints_it(place):
    job = place.submit("import time\nprint('first words')\ntime.sleep(3600)\n")  # clock: the test ends it before
    wait_for("its first words", lambda: "first words" in place.log(job))
    place.souk("job", "cancel", str(job), "-y")
    told = place.submit("import os, sys\nprint(repr(os.environ['PYTHONUNBUFFERED']))\n", envs={"PYTHONUNBUFFERED": ""})
    assert place.ended(told)["state"] == "succeeded" and place.log(told) == "''\n"
    place.ended(job)


def test_the_rank_that_failed_is_quoted_and_named(place):
    file = write(place, num_nodes=2, run="if [ $SOUK_RANK = 1 ]; then echo the real reason >&2; exit 3; fi; exec sleep 600")
    done = place.souk("job", "submit", "-y", file, code=1)
    job = place.market.get("/v1/jobs", place.token).json["items"][0]["id"]
    assert "the real reason\n" in done.stderr and f"souk job logs {job} --rank 1" in done.stderr, done
    everything = place.souk("job", "logs", str(job), "--rank", "all")
    assert everything.stdout.splitlines() == ["the real reason"], everything
    assert ", worker 1 on " in everything.stderr and ", worker 0 on " in everything.stderr, everything
    refused = place.souk("job", "logs", str(job), "--rank", "all", "-f", code=2)
    assert "--follow goes with one rank" in refused.stderr, refused
    done = place.souk("job", "submit", "-y", write(place, num_nodes=2, run="echo rank $SOUK_RANK"))
    job = place.market.get("/v1/jobs", place.token).json["items"][0]["id"]
    everything = place.souk("job", "logs", str(job), "--rank", "all")
    assert set(everything.stdout.splitlines()) == {"rank 0", "rank 1"}, everything


def test_results_are_told_of_where_there_are_any(place):
    done = place.souk("job", "submit", "-y", write(place, run="echo said"))
    assert "job fetch" not in done.stderr and "--rank all" in done.stderr, done
    done = place.souk("job", "submit", "-y", write(place, run="echo 1 > $SOUK_OUTPUT_DIR/one"))
    assert "The results (1 file, " in done.stderr and "souk job fetch " in done.stderr, done
    assert "Runs:     a command of your own on 1 worker\n" in done.stdout, done


@needs_tun
def test_the_framework_is_told(place):
    done = place.souk("job", "submit", "-y", write(place, runtime="torch", num_nodes=2))
    assert "Runs:     a torch program of your own on 2 workers\n" in done.stdout, done


def test_too_little_memory_is_told_with_its_amount_and_field(place):
    job = place.submit("held = bytearray(1 << 30)\nfor i in range(0, len(held), 4096): held[i] = 1\n")
    ended = place.ended(job)
    assert ended["state"] == "failed"
    # Without cgroups the program is refused the memory and says so itself.
    assert "than the 205 MiB it was given: raise resources.memory" in ended["reason"] or "MemoryError" in place.log(job), ended


def test_what_the_file_names_is_looked_at_before_it_is_sent(place):
    junk = place.folder / "junk"
    junk.write_bytes(b"junk!")
    done = place.souk("job", "submit", "-y", "--resume", str(junk), write(place), code=2)
    assert "is no checkpoint of a program: a tar file" in done.stderr, done
    for fields in ({"workdir": "/no/such"}, {"wheels": ["/no/such.whl"]}, {"requirements": "/no/such.txt"}):
        file = write(place, **fields)
        told = [subprocess.run([PROGRAM, "job", *command, file, "--server", place.market.url], capture_output=True, text=True,
                               env={**os.environ, "SOUK_TOKEN": place.token, "NO_COLOR": "1"}, stdin=subprocess.DEVNULL)
                for command in (("validate",), ("submit", "-y"))]
        assert told[0].returncode != 0 and "/no/such" in told[0].stderr, told
        assert told[0].stderr.splitlines()[0] == told[1].stderr.splitlines()[0], told
