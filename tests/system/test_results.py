"""What a job left, put straight to S3, in parts where it is large, and to HDFS.

covers client/results.c, source/remote_put.c, source/remote_s3_put.c, source/remote_hdfs_put.c
"""
import hashlib
import os
import subprocess

import pytest

from checkpoints import Place
from serving import HUNG_S, PROGRAM
from source_servers import Bucket, Faulty, Hadoop

MIB = 1 << 20

SCRIPT = r"""
import os
folder = os.environ["SOUK_OUTPUT_DIR"]
open(os.path.join(folder, "small.json"), "w").write("{}")
open(os.path.join(folder, "empty"), "w")
os.makedirs(os.path.join(folder, "deep", "perché"))
open(os.path.join(folder, "deep", "perché", "two words"), "w").write("100%")
with open(os.path.join(folder, "large.bin"), "wb") as file:
    for i in range(20):
        file.write(bytes([i]) * (1 << 20))
    file.write(b"end")
"""
LARGE = b"".join(bytes([i]) * MIB for i in range(20)) + b"end"
WHOLE = {"rank0-small.json": b"{}", "rank0-empty": b"", "rank0-large.bin": LARGE,
         "rank0-deep/perché/two words": b"100%"}


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A market where a job has left some files."""
    place = Place(tmp_path_factory.mktemp("left"))
    try:
        place.lend("first")
        place.number = place.submit(SCRIPT)
        assert place.ended(place.number)["state"] == "succeeded", place.log(place.number)
        yield place
    finally:
        place.stop()


def fetch(place, target, environment, *names, code=0):
    scratch = place.folder / "scratch"
    scratch.mkdir(exist_ok=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HADOOP_"))}
    done = subprocess.run(
        [PROGRAM, "job", "fetch", str(place.number), *names, "-o", target, "--server", place.market.url,
         "--config-dir", str(place.folder / "config")], capture_output=True, text=True, timeout=HUNG_S, cwd=place.folder,
        stdin=subprocess.DEVNULL, env={**clean, "SOUK_TOKEN": place.token, "NO_COLOR": "1", "TMPDIR": str(scratch),
                                       **environment})
    assert done.returncode == code, done
    assert not list(scratch.iterdir()) and "sEcReT" not in done.stdout + done.stderr
    return done


def test_results_go_to_a_bucket_in_parts_that_are_tried_again(left):
    with Bucket({"out/job 1/rank0-empty": b"an older one"}, token="of/a+session=") as bucket:
        bucket.faults = {"PUT": [503], "PUT 2": [500, 429], "POST": [500]}
        done = fetch(left, "s3://souk-data/out/job 1/", bucket.environment())
        assert "Trying again" in done.stderr and "s3://souk-data/out/job 1/rank0-large.bin" in done.stderr
        assert bucket.objects == {f"out/job 1/{name}": data for name, data in WHOLE.items()}
        assert bucket.uploads == {}
        parts = [line for line in bucket.asked if "partNumber" in line]
        assert len(parts) == 3 + 2 and all("large.bin" in line for line in parts)  # 20 MiB by 8, two of them once more


def test_a_bucket_elsewhere_is_found_and_what_was_sent_in_vain_is_dropped(left):
    with Bucket({}) as bucket:
        fetch(left, "s3://souk-data", {**bucket.environment(), "AWS_REGION": "us-east-1"}, "rank0-small.json")
        assert bucket.objects == {"rank0-small.json": b"{}"}
        bucket.faults = {"PUT 3": [403]}
        done = fetch(left, "s3://souk-data/x", bucket.environment(), "rank0-large.bin", code=5)
        assert "InternalError" in done.stderr and bucket.uploads == {} and "x/rank0-large.bin" not in bucket.objects


def test_parts_whose_last_answer_is_lost_are_there_and_that_is_enough(left):
    with Bucket({}) as bucket:
        bucket.answers_lost = 1
        fetch(left, "s3://souk-data/x", bucket.environment(), "rank0-large.bin")
        assert bucket.objects == {"x/rank0-large.bin": LARGE} and bucket.uploads == {}
        assert bucket.asked.count("HEAD x/rank0-large.bin") == 1, bucket.asked


def test_an_upload_that_is_gone_is_no_success_where_another_object_is(left):
    with Bucket({"x/rank0-large.bin": b"an older one"}) as bucket:
        bucket.drops_uploads = 2
        done = fetch(left, "s3://souk-data/x", bucket.environment(), "rank0-large.bin", code=3)
        assert "dropped the parts" in done.stderr and bucket.objects == {"x/rank0-large.bin": b"an older one"}, done.stderr


def test_an_object_of_the_same_size_does_not_pass_for_the_one_that_was_sent(left):
    with Bucket({"x/rank0-large.bin": bytes(len(LARGE))}) as bucket:
        bucket.drops_uploads = 1
        fetch(left, "s3://souk-data/x", bucket.environment(), "rank0-large.bin")  # sent once more
        assert bucket.objects == {"x/rank0-large.bin": LARGE} and bucket.uploads == {}
        assert bucket.asked.count("HEAD x/rank0-large.bin") == 1, bucket.asked


@pytest.mark.parametrize("change, target, code, words", [
    ({"AWS_SECRET_ACCESS_KEY": "other"}, "s3://souk-data/x", 5, "is not that of AWS_ACCESS_KEY_ID"),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "s3://souk-data/x", 5, "are not set"),
    ({}, "s3://another/x", 3, "there is no such bucket"),
    ({}, "https://host/x", 2, "results go into a folder here, to s3://bucket/..."),
    ({}, "s3://souk-data/x#sha256=" + hashlib.sha256(b"").hexdigest(), 2, "results go into"),
])
def test_what_is_refused_is_told_in_a_sentence(left, change, target, code, words):
    with Bucket({}) as bucket:
        done = fetch(left, target, {**bucket.environment(), **change}, "rank0-small.json", code=code)
        assert words in done.stderr and bucket.objects == {}, done.stderr


def test_results_go_to_hdfs_by_way_of_a_data_node(left):
    with Hadoop({"/user/me/out/rank0-empty": b"an older one"}, cuts={"/user/me/out/rank0-large.bin": 2}) as hadoop:
        done = fetch(left, hadoop.address("/user/me/out"), {"HADOOP_USER_NAME": "me"})
        assert "Trying again" in done.stderr
        assert hadoop.data.files == {f"/user/me/out/{name}": data for name, data in WHOLE.items()}
        assert hadoop.names.asked.count("CREATE /user/me/out/rank0-large.bin") == 3
        done = fetch(left, hadoop.address("/user/me/no"), {}, "rank0-empty", code=5)
        assert "HADOOP_USER_NAME" in done.stderr
    with Faulty({}) as nobody:
        address = nobody.url.replace("http://", "webhdfs://") + "/x"
        assert fetch(left, address, {"HADOOP_USER_NAME": "me"}, "rank0-empty", code=5)
