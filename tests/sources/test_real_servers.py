"""Data at S3 and HDFS that are not ours: moto, which checks signatures by botocore, and a Hadoop
name node with its data node. `make test-sources` prepares them and sets SOUK_SOURCES.

covers source/remote_s3.c, source/remote_hdfs.c, source/remote_folder.c, source/remote_s3_put.c, source/remote_hdfs_put.c
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from program import Souk  # noqa: E402
from serving import HUNG_S, own_port  # noqa: E402
from test_results import WHOLE, fetch, left  # noqa: E402,F401
from test_sources import assert_trained, images, rows, scratch, train  # noqa: E402,F401

FOLDER = pathlib.Path(os.environ["SOUK_SOURCES"])


@pytest.fixture
def souk(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Souk(home)


def wait_for_answer(url, process, log):
    end = time.monotonic() + HUNG_S
    while True:
        assert process.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
        try:
            return urllib.request.urlopen(url, timeout=HUNG_S).read()
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)  # clock: retry interval


def stop(*processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(HUNG_S)


# ---- S3 ---------------------------------------------------------------------------------------------

PUT = """
import json, sys, boto3, urllib.request
url, files = sys.argv[1], json.load(sys.stdin)
iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
iam.create_user(UserName="me")
iam.put_user_policy(UserName="me", PolicyName="all", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}))
key = iam.create_access_key(UserName="me")["AccessKey"]
s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
s3.create_bucket(Bucket="souk-data")
for name, body in files.items():
    s3.put_object(Bucket="souk-data", Key=name, Body=bytes.fromhex(body))
# From now on every request is authenticated, its signature too.
urllib.request.urlopen(urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", method="POST",
                       headers={"Content-Type": "text/plain"}))
json.dump([key["AccessKeyId"], key["SecretAccessKey"]], sys.stdout)
"""


@pytest.fixture
def s3(souk, tmp_path):
    """A function that puts objects there, once, and sets the program's environment."""
    log = tmp_path / "moto.log"
    port = own_port()
    url = f"http://127.0.0.1:{port}"
    with open(log, "w") as out:
        server = subprocess.Popen([FOLDER / "moto/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)],
                                  stdout=out, stderr=out)

    def put(files):
        wait_for_answer(url + "/moto-api/data.json", server, log)
        done = subprocess.run([FOLDER / "moto/bin/python", "-c", PUT, url], text=True, capture_output=True, check=True,
                              input=json.dumps({name: body.hex() for name, body in files.items()}))
        key, secret = json.loads(done.stdout)
        souk.variables.update(AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret, AWS_ENDPOINT_URL=url)

    yield put
    stop(server)


def test_moto_takes_our_signatures_and_no_others(souk, s3, tmp_path, scratch):  # noqa: F811
    name = "a b/größe+1=(x)~.csv"
    many = {f"many/{i:04}.txt": b"x" for i in range(1005)}
    s3({name: rows(), **images(), "large": os.urandom(1 << 20) * 20, **many})
    assert_trained(train(souk, tmp_path, f"s3://souk-data/{name}"))
    assert "40 images of 1 x 8 x 8; 2 classes." in train(souk, tmp_path, "s3://souk-data/set/").stderr
    # In parts, put together again: its hash is told when it is not the one that was asked for.
    done = train(souk, tmp_path, f"s3://souk-data/large#sha256={'0' * 64}", code=8)
    assert "its SHA-256 is" in done.stderr
    # More than a page has.
    done = train(souk, tmp_path, "s3://souk-data/many/", code=2)
    assert "Fetched 1005 B" in done.stderr, done.stderr
    done = train(souk, tmp_path, "s3://souk-data/nothing.csv", code=3)
    assert "there is no such object" in done.stderr
    souk.variables["AWS_SECRET_ACCESS_KEY"] = "wrong"
    done = train(souk, tmp_path, f"s3://souk-data/{name}", code=5)
    assert "AWS_SECRET_ACCESS_KEY is not that of AWS_ACCESS_KEY_ID" in done.stderr


GET = """
import json, sys, boto3
url, key, secret = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret)
found = s3.list_objects_v2(Bucket="souk-data", Prefix="out/").get("Contents", [])
uploads = s3.list_multipart_uploads(Bucket="souk-data").get("Uploads", [])
json.dump({"objects": {o["Key"]: s3.get_object(Bucket="souk-data", Key=o["Key"])["Body"].read().hex() for o in found},
           "uploads": len(uploads)}, sys.stdout)
"""


def test_moto_takes_results_whole_and_in_parts(souk, s3, left):  # noqa: F811
    s3({})
    environment = {name: souk.variables[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")}
    fetch(left, "s3://souk-data/out/größe (1)/", environment)
    done = subprocess.run([FOLDER / "moto/bin/python", "-c", GET, environment["AWS_ENDPOINT_URL"],
                           environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]],
                          text=True, capture_output=True, check=True)
    there = json.loads(done.stdout)
    assert there == {"uploads": 0, "objects": {f"out/größe (1)/{name}": body.hex() for name, body in WHOLE.items()}}
    done = fetch(left, "s3://souk-data/no", {**environment, "AWS_SECRET_ACCESS_KEY": "wrong"}, code=5)
    assert "AWS_SECRET_ACCESS_KEY is not that of AWS_ACCESS_KEY_ID" in done.stderr


# ---- HDFS -------------------------------------------------------------------------------------------

OPENED = "--add-opens=java.base/java.lang=ALL-UNNAMED"  # Hadoop 3.3 was written for Java 8 and 11
NAME_NODE = "127.83.0.1"  # hdfs:// names no port of WebHDFS: an address of our own, at its usual one


def write_settings(path, settings):
    path.write_text("<configuration>" + "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
        + "</configuration>")


class Hadoop:
    def __init__(self, folder):
        self.folder = folder
        conf = folder / "conf"
        for webapp in ("hdfs", "datanode"):  # their pages are in no jar; WebHDFS needs none
            (conf / "webapps" / webapp).mkdir(parents=True)
        write_settings(conf / "core-site.xml", {"fs.defaultFS": f"hdfs://{NAME_NODE}:8020",
                                                "hadoop.tmp.dir": folder / "tmp"})
        write_settings(conf / "hdfs-site.xml", {
            "dfs.replication": 1, "dfs.namenode.http-address": f"{NAME_NODE}:9870", "dfs.blocksize": 1048576,
            "dfs.datanode.address": "127.0.0.1:0", "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0", "dfs.datanode.hostname": "127.0.0.1",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false"})
        (conf / "log4j.properties").write_text(
            "log4j.rootLogger=INFO,out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.SimpleLayout\n")
        self.log = folder / "hadoop.log"
        self.url = f"http://{NAME_NODE}:9870/webhdfs/v1"
        self.nodes = []

    def start(self):
        self.run("namenode.NameNode", "-format", "-force", "-nonInteractive").wait(HUNG_S)
        self.nodes.append(self.run("namenode.NameNode"))
        wait_for_answer(f"{self.url}/?op=LISTSTATUS", self.nodes[0], self.log)
        self.nodes.append(self.run("datanode.DataNode"))

    def run(self, name, *arguments):
        with open(self.log, "a") as out:
            return subprocess.Popen([shutil.which("java"), "-Xmx256m", OPENED, "-cp", f"{self.folder}/conf:{FOLDER}/hadoop/*",
                                     f"org.apache.hadoop.hdfs.server.{name}", *arguments], stdout=out, stderr=out)

    def put(self, path, body, permission="644"):
        """By WebHDFS: the name node names a data node, once it has one."""
        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_):
                return None

        end = time.monotonic() + HUNG_S
        url = f"{self.url}{urllib.request.quote(path)}?op=CREATE&overwrite=true&permission={permission}&user.name=me"
        while True:
            try:
                urllib.request.build_opener(Stay).open(urllib.request.Request(url, method="PUT"))
            except urllib.error.HTTPError as answer:
                if answer.code == 307:
                    place = answer.headers["Location"]
                    break
            assert time.monotonic() < end, self.log.read_text()[-2000:]
            time.sleep(0.2)  # clock: retry interval
        urllib.request.urlopen(urllib.request.Request(place, data=body, method="PUT")).close()


@pytest.fixture
def hadoop(tmp_path):
    """Its root belongs to who started it: HADOOP_USER_NAME is who reads and writes below."""
    os.environ["HADOOP_USER_NAME"] = "me"
    folder = tmp_path / "hadoop"
    folder.mkdir()
    hadoop = Hadoop(folder)
    try:
        hadoop.start()
        yield hadoop
    finally:
        stop(*hadoop.nodes)


def test_a_name_node_and_its_data_node_are_read(souk, hadoop, tmp_path, scratch):  # noqa: F811
    large = os.urandom(1 << 20) * 5  # blocks of 1 MiB
    hadoop.put("/user/me/the rows.csv", rows())
    hadoop.put("/user/me/private.csv", rows(), permission="600")
    hadoop.put("/user/me/large", large)
    for name, body in images(each=5).items():
        hadoop.put("/user/me/" + name, body)
    address = f"hdfs://{NAME_NODE}:8020/user/me"
    assert_trained(train(souk, tmp_path, f"{address}/the rows.csv"))
    assert "10 images of 1 x 8 x 8; 2 classes." in train(souk, tmp_path, f"{address}/set/").stderr
    done = train(souk, tmp_path, f"{address}/large#sha256={'0' * 64}", code=8)
    assert f"its SHA-256 is {hashlib.sha256(large).hexdigest()}" in done.stderr
    assert "there is no such file" in train(souk, tmp_path, f"{address}/nothing.csv", code=3).stderr
    assert "it is a folder" in train(souk, tmp_path, f"{address}/set", code=2).stderr
    souk.variables["HADOOP_USER_NAME"] = "other"
    done = train(souk, tmp_path, f"{address}/private.csv", code=5)
    assert "the file's permissions forbid it; HADOOP_USER_NAME names who asks" in done.stderr


def test_a_name_node_and_its_data_node_take_results(souk, hadoop, left):  # noqa: F811
    hadoop.put("/user/me/out/rank0-empty", b"an older one")
    fetch(left, f"hdfs://{NAME_NODE}:8020/user/me/out", {"HADOOP_USER_NAME": "me"})
    for name, body in WHOLE.items():
        there = urllib.request.urlopen(f"{hadoop.url}/user/me/out/{urllib.parse.quote(name)}?op=OPEN&user.name=me").read()
        assert hashlib.sha256(there).digest() == hashlib.sha256(body).digest(), name
    done = fetch(left, f"hdfs://{NAME_NODE}:8020/elsewhere", {"HADOOP_USER_NAME": "other"}, code=5)
    assert "HADOOP_USER_NAME names who asks" in done.stderr
