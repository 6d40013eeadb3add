"""Files that a job's ranks find in their working folder, from here, a web server and S3, whole or each rank its part.

covers client/mounts.c, runtime/job_field_mounts.c, runtime/mount_index.c, peer/mount_writer.c, worker/command_files.c
"""
import hashlib
import json
import os
import random
import re
import subprocess

import pytest

from ranks import Place
from serving import HUNG_S, PROGRAM
from source_servers import Bucket, Faulty, Hadoop
from training import wait_for

MIB = 1 << 20

SCRIPT = r"""
import errno, hashlib, json, os
found = {}
for folder, _, files in os.walk(".", followlinks=True):
    for name in files:
        path = os.path.relpath(os.path.join(folder, name), ".")
        found[path] = hashlib.sha256(open(path, "rb").read()).hexdigest()
refused = []
for act in (lambda: open("in/rows/new", "w"), lambda: open("model.bin", "a"), lambda: os.chmod("model.bin", 0o777)):
    try:
        act()
    except OSError as error:
        refused.append(errno.errorcode[error.errno])
print("found", json.dumps({"files": found, "refused": refused, "program": os.access("in/rows/part-0", os.X_OK)}), flush=True)
"""


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path, ["first", "second"])
    try:
        yield place
    finally:
        place.stop()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def report(place, rank):
    line = wait_for(f"rank {rank}", lambda: re.search(r"^found (.*)$", place.log(rank), re.M))
    return json.loads(line.group(1))


def fetched_bytes(place):
    """What each lender fetched for its lease, from wherever."""
    sizes = {}
    for name in place.lenders:
        text = (place.folder / f"{name}.log").read_text()
        counts = re.findall(r"data_fetched lease=\d+ market_bytes=(\d+) direct_bytes=(\d+)", text)
        sizes[name] = sum(int(a) + int(b) for a, b in counts)
    return sizes


def test_ranks_find_files_from_everywhere_and_their_part_of_what_is_shared(place):
    random.seed(7)
    rows = place.folder / "rows"
    (rows / "deep").mkdir(parents=True)
    parts = {f"deep/part-{i}" if i % 2 else f"part-{i}": random.randbytes(6 * MIB + i) for i in range(4)}
    for name, data in parts.items():
        (rows / name).write_bytes(data)
    (rows / "part-0").chmod(0o755)
    lines = b"".join(b"%d,%s\n" % (i, b"x" * (i % 40)) for i in range(1000))
    (place.folder / "lines.csv").write_bytes(lines)
    model, page, faces = random.randbytes(1000), b"from a site", {"faces/a.png": b"a", "faces/more/b.png": b"bb"}
    (place.folder / "model").write_bytes(model)
    with Bucket(faces) as bucket, Hadoop({"/user/me/h/x": b"hdfs"}) as hadoop, Faulty({"/page": (page, [])}) as site:
        variables = {**bucket.environment(), "HADOOP_USER_NAME": "me"}
        os.environ.update(variables)
        try:
            done = place.run(SCRIPT, {"num_nodes": 2, "resources": {"cpus": 0.2, "memory": 0.2, "disk_size": "256MiB"},
                                      "file_mounts": {
                "in/rows/": {"source": str(rows), "shard": True}, "model.bin": str(place.folder / "model"),
                "in/lines.csv": {"source": str(place.folder / "lines.csv"), "shard": True},
                "~/faces": "s3://souk-data/faces/", "./page": f"{site.url}/page", "h/x": hadoop.address("/user/me/h/x")}})
        finally:
            for name in variables:
                del os.environ[name]
    assert done.returncode == 0, (done.out, done.err)

    found = [report(place, rank) for rank in range(2)]
    for one in found:
        files = one["files"]
        assert files["model.bin"] == sha(model) and files["page"] == sha(page)
        assert files["h/x"] == sha(b"hdfs")
        assert files["faces/a.png"] == sha(b"a") and files["faces/more/b.png"] == sha(b"bb")
        assert len(one["refused"]) == 3 and set(one["refused"]) <= {"EROFS", "EACCES"}, one["refused"]
    own = [{name: one["files"][f"in/rows/{name}"] for name in parts if f"in/rows/{name}" in one["files"]} for one in found]
    assert [sorted(names) for names in own] == [["deep/part-1", "deep/part-3"], ["part-0", "part-2"]]
    assert {**own[0], **own[1]} == {name: sha(data) for name, data in parts.items()}
    assert found[1]["program"]
    halves = [one["files"]["in/lines.csv"] for one in found]
    cut = next(at for at in range(len(lines) + 1) if sha(lines[:at]) == halves[0])
    assert lines[cut - 1:cut] == b"\n" and sha(lines[cut:]) == halves[1] and abs(cut - len(lines) / 2) < len(lines) / 50

    spec = place.job()["spec"]
    assert spec["file_mounts"] == {"faces": {}, "h/x": {}, "in/lines.csv": {"shard": True}, "in/rows": {"shard": True},
                                   "model.bin": {}, "page": {}}
    # A rank's files are half of all; what its first and last chunk have besides, and the index's, may be the others'.
    for name, size in fetched_bytes(place).items():
        assert 12 * MIB < size < 12 * MIB + 3 * 4 * MIB, (name, size)


def test_what_cannot_be_is_said_before_anything_is_sent(place):
    (place.folder / "few").mkdir()
    (place.folder / "few" / "one").write_text("1")
    (place.folder / "rows.csv.gz").write_bytes(b"x")

    def refused(mounts, words, code, **more):
        job = {"name": "no", "run": "true", "num_nodes": 2, "file_mounts": mounts, "market": {"max_run_time": "1m"}, **more}
        (place.folder / "no.yaml").write_text(json.dumps(job))
        done = subprocess.run(
            [PROGRAM, "job", "submit", "-y", "-d", "no.yaml", "--server", place.market.url, "--config-dir",
             str(place.folder / "config")], capture_output=True, text=True, timeout=HUNG_S, cwd=place.folder,
            stdin=subprocess.DEVNULL, env={**os.environ, "SOUK_TOKEN": place.token, "NO_COLOR": "1"})
        assert done.returncode == code and words in done.stderr, done

    for target in ("../up", "/etc/data", "a/../b", "", "~", "a//b"):
        refused({target: "few"}, "is no place in the working folder", 2)
    refused({"a": "few", "a/b": "few"}, '"a/b" lies in "a"', 2)
    refused({"a": {"source": "few", "shards": True}}, '"shards" is unknown', 2)
    refused({"a": "nowhere"}, '"nowhere"', 3)
    refused({"a": {"shard": True}}, "needs a source", 2)
    refused({"a": {"source": "few", "shard": True}}, "1 files, too few for 2 ranks", 2)
    refused({"a": {"source": "rows.csv.gz", "shard": True}}, "compressed", 2)

    body = {"name": "no", "run": "true", "file_mounts": {"a": "few"}}
    assert place.market.post("/v1/jobs", body, place.token).status == 400
    answer = place.market.post("/v1/jobs", {**body, "file_mounts": {"a": {}}}, place.token)
    assert answer.status == 400 and b"files of file_mounts are missing" in answer.body
    checked = place.market.call("POST", "/v1/jobs/check", json.dumps(body), place.token).json
    assert checked["is_valid"] and checked["needs"] == ["file_mounts"], checked

    # A folder of the workdir is not hidden by a mount.
    (place.folder / "files").mkdir()
    (place.folder / "files" / "in").write_text("mine")
    done = place.run("", {"run": "true", "file_mounts": {"in": str(place.folder / "few")}})
    assert done.returncode == 1 and '"in" is in workdir already' in done.err + done.out, (done.out, done.err)
