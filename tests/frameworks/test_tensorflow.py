"""TensorFlow's two strategies on three lenders, two of them behind routers; a rank is killed in each.

TensorFlow comes from PyPI into a venv (tests/frameworks/venv), which the lenders lend as software.
"""
import re
import subprocess

import pytest
from networks import HERE, homes  # noqa: F401 (a fixture)
from test_homes import finish

EXAMPLES = HERE.parent.parent / "examples"
MIRRORED = (EXAMPLES / "tensorflow-mirrored.py").read_text()
SERVERS = (EXAMPLES / "tensorflow-servers.py").read_text()
JOB = {"runtime": "tensorflow", "num_nodes": 3, "resources": {"cpus": 0.5, "memory": 1, "labels": ["tensorflow"]},
       "run": "exec python3 script.py", "envs": {"TF_CPP_MIN_LOG_LEVEL": "1"}, "market": {"max_run_time": "9m"}}


@pytest.fixture(scope="session")
def venv():
    return subprocess.run([HERE / "venv", "tensorflow"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture
def place(homes, venv):
    return homes(options=("--software", f"tensorflow={venv}"))


def assert_mirrored(place):
    """Each worker logged for itself, and all have the same model."""
    told = [re.findall(rf"^worker {rank} of 3: loss (\S+) to (\S+), weights (\S+)$", place.log(rank), re.M)
            for rank in range(3)]
    assert all(len(found) == 1 for found in told) and len({found[0][2] for found in told}) == 1, place.logs()
    assert float(told[0][0][1]) < float(told[0][0][0]), place.logs()


def test_mirrored_workers_train_one_model(place):
    finish(place, place.start(MIRRORED, JOB))
    assert_mirrored(place)


def test_a_killed_worker_is_named_and_all_begin_anew(place):
    dies = MIRRORED.replace("history = ", """class Dying(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if task["index"] == 1 and not os.path.exists("died"):
            open("died", "w").close()
            os.kill(os.getpid(), 9)


history = """).replace("verbose=0", "verbose=0, callbacks=[Dying()]")
    finish(place, place.start(dies, {**JOB, "max_restarts": 3}))
    assert re.search(r"souk: rank \d on \w+: .*; all start anew, 1 of 3\n", place.log(0)), place.logs()
    assert_mirrored(place)


def assert_served(place):
    told = re.findall(r"^chief: loss (\S+) to (\S+) by (\d+) steps$", place.log(0), re.M)
    assert len(told) == 1 and float(told[0][1]) < float(told[0][0]), place.logs()
    assert "worker 0 serves\n" in place.log(1) and "ps 0 serves\n" in place.log(2), place.logs()


def test_a_chief_trains_by_a_worker_and_a_parameter_server(place):
    finish(place, place.start(SERVERS, {**JOB, "tensorflow": {"parameter_servers": 1}}))
    assert_served(place)


def test_a_killed_worker_alone_begins_anew_and_the_chief_goes_on(place):
    dies = SERVERS.replace("    server.join()", """    if cluster.task_type == "worker" and not os.path.exists("died"):
        import threading
        open("died", "w").close()
        threading.Timer(8, os.kill, (os.getpid(), 9)).start()  # clock: dies amid the training
    server.join()""").replace("    coordinator.join()\n", "    coordinator.join()\n    import time; time.sleep(1)\n")  # clock: the chief goes on
    finish(place, place.start(dies, {**JOB, "tensorflow": {"parameter_servers": 1}, "restart": "rank",
                                     "max_restarts": 1, "envs": {**JOB["envs"], "STEPS": "600"}}))
    assert "it starts anew, 1 of 1\n" in place.log(1) and place.log(1).count("worker 0 serves\n") == 2, place.logs()
    assert "anew" not in place.log(0) + place.log(2), place.logs()
    assert_served(place)
