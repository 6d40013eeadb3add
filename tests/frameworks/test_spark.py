"""Spark's own programs on a cluster of the job's own: a word count, a plain program, a worker lost.

Needs a Java (Debian's default-jre-headless) and the venv of `tests/frameworks/venv spark`, which the lenders lend.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from ranks import HUNG_JOB_S, Place  # noqa: E402
from training import wait_for  # noqa: E402

JOB = {"runtime": "spark", "num_nodes": 3, "run": "spark-submit script.py",
       "resources": {"cpus": 0.5, "memory": 1, "labels": ["spark"]}, "market": {"max_run_time": "20m"}}

WORDS = """
import os, pathlib
from pyspark.sql import SparkSession
spark = SparkSession.builder.appName("words").getOrCreate()
lines = spark.sparkContext.parallelize(["to be or not to be", "that is the question"] * 50, 6)
counts = dict(lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(lambda a, b: a + b).collect())
print("counted", counts["be"], counts["question"], "on", spark.sparkContext.master, flush=True)
"""
ARCHIVE = """
print("archive", "souk.jsa" in pathlib.Path(f"/proc/{os.getppid()}/maps").read_text(), os.environ.get("JAVA_HOME"), flush=True)
"""


@pytest.fixture(scope="module")
def venv():
    if not shutil.which("java"):
        pytest.fail("SPARK'S TESTS DID NOT RUN: no java here (apt-get install default-jre-headless)")
    return subprocess.run([HERE / "venv", "spark"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class SparkPlace(Place):
    """Its lenders lend the venv."""

    def __init__(self, folder, venv, names):
        self.venv = venv
        super().__init__(folder, names)

    def lender_of(self, name):
        return {"options": ("--network", "job", "--software", f"spark={self.venv}", "--memory", "60%")}


@pytest.fixture
def place(tmp_path, venv):
    place = SparkPlace(tmp_path, venv, ("first", "second", "third"))
    try:
        yield place
    finally:
        place.stop()


def logs(place):
    return "\n".join(f"-- rank {rank}\n{place.log(rank)}" for rank in range(3))


def run(place, script, job):
    process = place.start(script, job)
    process.out, process.err = process.communicate(timeout=HUNG_JOB_S)
    return process


def test_words_are_counted_on_the_cluster(place):
    done = run(place, WORDS + ARCHIVE, JOB)
    assert done.returncode == 0, (done.out, done.err, logs(place))
    assert "counted 100 50 on spark://10.77.0.1:7100\n" in place.log(0), logs(place)
    assert "archive True None\n" in place.log(0), logs(place)  # which tools/spark-archive has made


def test_a_plain_python_program_finds_the_cluster_and_its_status_is_the_jobs(place):
    done = run(place, WORDS + "\nraise SystemExit(7)\n", {**JOB, "run": "exec python3 script.py"})
    assert done.returncode != 0, (done.out, done.err, logs(place))
    assert "counted 100 50 on spark://10.77.0.1:7100\n" in place.log(0), logs(place)
    assert place.job()["reason"].startswith("rank 0 failed: exit status 7"), (place.job(), logs(place))


SLOW = """
import time
from pyspark.sql import SparkSession
sc = SparkSession.builder.getOrCreate().sparkContext

def part(index):
    print("part", index, flush=True)
    time.sleep(1)  # clock: the work of a part, so that a worker is lost midway
    return index

def lease(_):
    import os, pathlib, uuid
    mark = pathlib.Path(os.environ["SOUK_SPARK_DIR"], "mark")
    if not mark.exists():
        mark.write_text(uuid.uuid4().hex)
    return os.environ["SPARK_LOCAL_IP"], mark.read_text()

first = None
for turn in range(1000):
    total = sc.parallelize(range(4), 4).map(part).sum()
    leases = dict(sc.parallelize(range(4), 4).map(lease).collect())
    print("turn", turn, "sum", total, "on", *sorted(leases), flush=True)
    first = first or leases.get("10.77.0.3")
    if leases.get("10.77.0.3", first) != first:
        print("the successor works", flush=True)
        break
"""


def test_a_lost_worker_is_named_and_its_successor_joins(place):
    process = place.start(SLOW, JOB)
    wait_for("both workers", lambda: place.market.get("/v1/jobs", place.token).json["items"]
             and "on 10.77.0.2 10.77.0.3\n" in place.log(0), HUNG_JOB_S)
    assert "part " in place.log(1), logs(place)  # what executors print is in their rank's log
    place.lend("fourth")
    lost = next(lease for lease in place.job()["leases"] if lease["rank"] == 2)
    place.settings({"lost_ms": 7000})
    place.die(lost["machine_name"])
    out, err = process.communicate(timeout=HUNG_JOB_S)
    assert process.returncode == 0, (out, err, logs(place))
    told = place.log(0).split(f"souk: rank 2 on {lost['machine_name']}: not heard for 6 s\n")
    assert len(told) == 2 and "the successor works\n" in told[1], logs(place)
    assert re.search(r"^turn \d+ sum 6 on 10.77.0.2", told[1], re.M), logs(place)  # the driver went on
