"""A rank of a program of one's own finds the Python package and libsouk, which nobody has put there.

covers peer/sdk.c, worker/command_environment.c
"""
import os

import pytest

from ranks import Place
from serving import is_built_with
from training import needs_tun

# Python is not linked with them, as libsouk is.
pytestmark = [pytest.mark.skipif(is_built_with("libasan") or is_built_with("libtsan"),
                                 reason="needs a program without sanitizers"), needs_tun]

REDUCE = """
import array, os, sys
import souk.sync
souk.sync.init()
values = array.array("f", [1.0 + souk.sync.rank()] * 3)
count = souk.sync.allreduce_floats(values.buffer_info()[0], len(values), souk.sync.SUM)
souk.sync.barrier()
print("reduced", count, values.tolist(), os.environ["PYTHONPATH"], os.environ["SOUK_LIBRARY"], souk.__file__)
assert not os.access(souk.__file__, os.W_OK), souk.__file__
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("place"), ("first", "second"))
    yield place
    place.stop()


@pytest.mark.parametrize("runtime", ("command", "torch"))
def test_ranks_reduce_with_nothing_set_up(place, runtime):
    kind = {} if runtime == "command" else {"runtime": runtime}
    done = place.run(REDUCE, {"num_nodes": 2, "resources": {"cpus": 0.2, "memory": 0.2, "network": "job"}, **kind})
    assert done.returncode == 0, (done.out, done.err, place.log(0), place.log(1))
    for rank in range(2):
        assert ("reduced 2 [3.0, 3.0, 3.0] /.souk/sdk /.souk/sdk/souk/libsouk.so.0 /.souk/sdk/souk/__init__.py"
                in place.log(rank))


def test_what_the_job_brings_comes_first(place):
    own = 'mkdir -p own/souk; echo "whose = 1" > own/souk/__init__.py; exec /usr/bin/python3 -c ' \
          '"import os, souk; print(souk.whose, os.environ[\'PYTHONPATH\'])"'
    done = place.run("", {"run": own, "envs": {"PYTHONPATH": "own"}})
    assert done.returncode == 0, (done.out, done.err, place.log(0))
    assert "1 own:/.souk/sdk\n" in place.log(0)


def test_it_lies_in_the_state_folder_once(place):
    for lender in ("first", "second"):
        folder, = os.listdir(place.folder / lender / "sdk")
        assert len(folder) == 24
