"""Another program put in the place of one that runs: what a lender's daemon starts is still its own.

covers sandbox/own_program.c
"""
import os
import shutil
import time

import pytest

from ranks import Place
from serving import PROGRAM, is_built_with

# With the thread sanitizer what runs inside is another program anyway: PROGRAM.plain.
pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="needs a program without the thread sanitizer")


class Upgraded(Place):
    def lender_of(self, name):
        self.program = self.folder / "bin" / "souk"
        self.program.parent.mkdir()
        shutil.copy2(PROGRAM, self.program)
        return {"program": str(self.program)}


@pytest.fixture
def place(tmp_path):
    place = Upgraded(tmp_path, ("kitchen",))
    yield place
    place.stop()


def copies(place):
    return [name for name in os.listdir(place.folder / "kitchen" / "sandboxes") if name.endswith(".program")]


def test_leases_run_after_the_program_was_replaced_and_after_it_was_removed(place):
    assert place.run("print('before')", {}).returncode == 0
    assert copies(place) == []
    other = place.folder / "other"
    other.write_text("#!/bin/sh\necho another program\nexit 3\n")
    other.chmod(0o755)
    os.replace(other, place.program)
    for state in ("replaced", "removed"):
        done = place.run(f"print('{state}')", {})
        assert done.returncode == 0, (done.out, done.err, place.log(0))
        assert f"{state}\n" in place.log(0)
        assert len(copies(place)) == 1
        place.program.unlink(missing_ok=True)
    place.lenders["kitchen"].stop()
    for name in copies(place):  # as if it was used minutes ago: who may just be launching it keeps it
        os.utime(place.folder / "kitchen" / "sandboxes" / name, (time.time() - 120,) * 2)
    shutil.copy2(PROGRAM, place.program)
    place.lenders["kitchen"].start()
    done = place.run("print('upgraded')", {})
    assert done.returncode == 0, (done.out, done.err, place.log(0))
    assert copies(place) == []
