"""What a borrower's program leaves in $SOUK_CHECKPOINT_DIR is there for whoever goes on after it.

covers worker/command_checkpoint.c, worker/checkpoint_folder.c, peer/tenancy_checkpoint.c, server/checkpoints.c
"""
import os
import signal
import tarfile
import uuid

import pytest

from checkpoints import Place, processes_with
from training import wait_for


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    try:
        yield place
    finally:
        place.stop()


# Told to, it ends with half a file, which a restart in the same place must not show.
BREAKER = r"""
import os, signal, sys
path = os.path.join(os.environ["SOUK_CHECKPOINT_DIR"], "model")
def fall(*_):
    half = open(path, "w")
    half.write("ha")
    half.flush()
    open(os.path.join(os.environ["SOUK_CHECKPOINT_DIR"], "second"), "w").write("x")
    os.kill(os.getpid(), signal.SIGKILL)
signal.signal(signal.SIGUSR1, fall)
if not os.path.exists(path):
    open(path, "w").write("whole")
    while True:
        signal.pause()
print("has", open(path).read(), sorted(os.listdir(os.environ["SOUK_CHECKPOINT_DIR"])), flush=True)
"""


def test_a_script_that_fails_half_way_and_a_later_job_go_on_from_what_was_whole(place):
    place.lend("first")
    word = uuid.uuid4().hex
    job = place.submit(BREAKER, max_restarts=1, run=f"exec /usr/bin/python3 script.py {word}")
    wait_for("the checkpoint", lambda: "checkpoint" in place.artifacts(job))
    os.kill(wait_for("the script", lambda: processes_with(word))[0], signal.SIGUSR1)
    done = place.ended(job)
    assert done["state"] == "succeeded", (done, place.log(job))
    assert "has whole ['model']" in place.log(job)

    place.souk("job", "fetch", str(job), "checkpoint", "-o", str(place.folder))
    with tarfile.open(place.folder / "checkpoint") as archive:
        assert archive.extractfile("model").read() == b"whole"
    later = place.submit(BREAKER, "--resume", str(place.folder / "checkpoint"))
    assert place.ended(later)["state"] == "succeeded"
    assert "has whole ['model']" in place.log(later)
