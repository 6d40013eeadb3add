"""Data and files that lie elsewhere: web servers, S3, HDFS.

covers client/bring.c, source/remote_s3.c, source/remote_hdfs.c, source/remote_folder.c
"""
import hashlib
import io
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tarfile
import time
import zlib

import pytest
from serving import HUNG_S, Market, own_port
from source_servers import Bucket, Faulty, Hadoop, drip, redirect_to

JOB = """name: petals
{secrets}train: {{model: logistic, data: "{data}", batch: 8, epochs: 2, seed: 7, optimizer: {{lr: 0.1}}}}
"""
TOLD = '300 rows of 2 numbers; 3 classes of "kind".'


def rows(count=300):
    chance = random.Random(4)
    lines = ["width,height,kind"]
    for i in range(count):
        kind = i % 3
        lines.append(f"{(0, 5, 0)[kind] + chance.gauss(0, 0.5):.4f},{(0, 0, 9)[kind] + chance.gauss(0, 0.8):.4f},"
                     f"{('rose', 'blue', 'red')[kind]}")
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def scratch(souk, tmp_path):
    """Where what is fetched lies: whatever happens, nothing stays."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    souk.variables["TMPDIR"] = str(folder)
    yield folder
    assert list(folder.iterdir()) == []


def train(souk, folder, address, code=0, secrets=""):
    job = folder / "job.yaml"
    job.write_text(JOB.format(data=address, secrets=secrets))
    return souk("train", job, "-o", folder / "out", "--json", code=code)


def assert_trained(done):
    assert TOLD in done.stderr, done.stderr
    assert json.loads(done.stdout)["test_accuracy"] > 0.9


# ---- Web servers ------------------------------------------------------------------------------------


@pytest.fixture
def nginx(tmp_path):
    """The real thing, on a port of its own; its files are below tmp_path/www."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    assert program, "nginx is missing: tools/install-deps installs it"
    folder = tmp_path / "nginx"
    www = tmp_path / "www"
    folder.mkdir()
    www.mkdir()
    port = own_port()  # nginx sets SO_REUSEADDR
    (folder / "nginx.conf").write_text(f"""
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log {folder}/access.log combined;
    client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port};
        root {www};
        location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
    }}
}}
""")
    process = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-p", str(folder)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + HUNG_S
    while True:
        assert process.poll() is None and time.monotonic() < end, process.stderr.read()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.02)  # clock: poll interval
    yield f"http://127.0.0.1:{port}", www, folder / "access.log"
    process.send_signal(signal.SIGQUIT)
    process.wait(HUNG_S)
    process.stderr.close()


def test_a_file_of_nginx_is_trained_with(souk, tmp_path, scratch, nginx):
    url, www, log = nginx
    (www / "rows.csv").write_bytes(rows())
    digest = hashlib.sha256(rows()).hexdigest()
    assert_trained(train(souk, tmp_path, f"{url}/moved/rows.csv?token=hidden#sha256={digest}"))
    asked = log.read_text()
    assert "GET /moved/rows.csv?token=hidden" in asked and '"GET /rows.csv?token=hidden HTTP/1.1" 200' in asked
    assert json.loads((tmp_path / "out" / "card.json").read_text())["data"] == "rows.csv"
    assert all("hidden" not in path.read_text(errors="replace")
               for path in (tmp_path / "out").rglob("*") if path.is_file())

    done = train(souk, tmp_path, f"{url}/rows.csv#sha256={'0' * 64}", code=8)
    assert f"its SHA-256 is {digest}, not what the address says" in done.stderr
    done = train(souk, tmp_path, f"{url}/nowhere.csv", code=3)
    assert "/nowhere.csv: there is no such file" in done.stderr
    # What is wrong with the rows is said with the address, not with a path of ours.
    (www / "bad.csv").write_bytes(rows() + b"1,2\n")
    done = train(souk, tmp_path, f"{url}/bad.csv", code=2)
    assert f"{url}/bad.csv" in done.stderr and "line 302" in done.stderr and str(scratch) not in done.stderr


def test_what_breaks_off_is_gone_on_with(souk, tmp_path, scratch):
    # The first is asked whether the file is there.
    with Faulty({"/rows.csv": (rows(), [None, 500, "cut", "reset"])}) as server:
        done = train(souk, tmp_path, f"{server.url}/rows.csv")
        assert_trained(done)
        assert done.stderr.count("Trying again in") == 3, done.stderr
        assert "the server answered with status 500" in done.stderr


def test_a_server_that_misleads_or_drips_is_left(souk, tmp_path, scratch):
    with Faulty({"/drip.csv": (rows(), [drip] * 9),
                 "/inside.csv": (rows(), [redirect_to("ftp://127.0.0.1/x")] * 9)}) as server:
        done = train(souk, tmp_path, f"{server.url}/inside.csv", code=5)
        assert "it redirects to what is not HTTP (ftp://127.0.0.1/x)" in done.stderr
        # Ctrl-C while nothing comes: nothing stays behind (scratch).
        job = tmp_path / "drip.yaml"
        job.write_text(JOB.format(data=f"{server.url}/drip.csv", secrets=""))
        process = souk.start("train", job, "-o", tmp_path / "out")
        for line in process.stderr:
            if "Fetching" in line:
                break
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=HUNG_S)
        assert process.returncode != 0 and "stopped" in told, told


# ---- S3 ---------------------------------------------------------------------------------------------


def test_an_object_of_s3_is_read_with_a_signature_that_holds(souk, tmp_path, scratch):
    name = "a b/größe+1=(x)~.csv"
    with Bucket({name: rows(), "public/rows.csv": rows(), "empty.csv": b""}, token="a+token==") as bucket:
        souk.variables.update(bucket.environment())
        assert_trained(train(souk, tmp_path, f"s3://souk-data/{name}"))
        # The bucket says where it is.
        souk.variables["AWS_REGION"] = "us-west-2"
        assert_trained(train(souk, tmp_path, f"s3://souk-data/{name}"))
        souk.variables["AWS_REGION"] = bucket.region

        def refused(address, code, sentence, **variables):
            kept = dict(souk.variables)
            souk.variables.update(variables)
            done = train(souk, tmp_path, address, code=code)
            souk.variables = kept
            assert sentence in done.stderr and bucket.secret_key not in done.stderr, done.stderr

        refused("s3://souk-data/nothing.csv", 3, "there is no such object")
        refused("s3://other-data/rows.csv", 3, "there is no such bucket")
        refused(f"s3://souk-data/{name}", 5, "AWS_SECRET_ACCESS_KEY is not that of AWS_ACCESS_KEY_ID",
                AWS_SECRET_ACCESS_KEY="wrong")
        refused(f"s3://souk-data/{name}", 5, "AWS_ACCESS_KEY_ID is not known there", AWS_ACCESS_KEY_ID="AKIANOT")
        refused(f"s3://souk-data/{name}", 5, "AWS_SESSION_TOKEN is not that of AWS_ACCESS_KEY_ID",
                AWS_SESSION_TOKEN="other")
        refused(f"s3://souk-data/{name}", 2, "AWS_ENDPOINT_URL", AWS_ENDPOINT_URL="s3://souk-data/x")
        refused("s3://souk-data/empty.csv", 2, "empty.csv")
        # Without keys, what is public.
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            del souk.variables[variable]
        assert_trained(train(souk, tmp_path, "s3://souk-data/public/rows.csv"))
        refused(f"s3://souk-data/{name}", 5, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
        # The job file's own count more than the environment's.
        souk.variables.update(AWS_ACCESS_KEY_ID="AKIANOT", AWS_SECRET_ACCESS_KEY="wrong")
        secrets = "secrets: {%s}\n" % ", ".join(f'{k}: "{v}"' for k, v in bucket.environment().items())
        assert_trained(train(souk, tmp_path, f"s3://souk-data/{name}", secrets=secrets))
        done = train(souk, tmp_path, f"s3://souk-data/{name}", code=2, secrets="secrets: {HF_TOKEN: hidden}\n")
        assert '"HF_TOKEN" is not used to read data' in done.stderr and "hidden" not in done.stderr


def test_a_large_object_is_read_in_parts_at_a_time(souk, tmp_path, scratch):
    body = rows(300) + b"".join(b"%d.5,%d.25,rose\n" % (i % 7, i % 11) for i in range(1500000))
    assert len(body) > 16 << 20
    digest = hashlib.sha256(body).hexdigest()
    with Bucket({"rows.csv": body}) as bucket:
        souk.variables.update(bucket.environment())
        # Its hash is wrong, so that nobody trains on it.
        done = train(souk, tmp_path, f"s3://souk-data/rows.csv#sha256={'0' * 64}", code=8)
        assert f"its SHA-256 is {digest}" in done.stderr
        parts = {line.partition(" ")[2] for line in bucket.asked}
        assert {"bytes=0-8388607", "bytes=8388608-16777215", f"bytes=16777216-{len(body) - 1}"} <= parts, parts


def images(classes=2, each=20):
    """Small pictures in a folder for each class: PNG files of 8 x 8."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    chance = random.Random(1)
    files = {}
    for kind in range(classes):
        for index in range(each):
            pixels = b"".join(b"\0" + bytes(min(255, kind * 150 + chance.randrange(60)) for _ in range(8))
                              for _ in range(8))
            files[f"set/{('dark', 'light')[kind]}/{index}.png"] = (
                b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))
    return files


def test_a_folder_of_s3_or_hdfs_is_read_file_by_file(souk, tmp_path, scratch):
    files = images()
    told = "40 images of 1 x 8 x 8; 2 classes."
    with Bucket({**files, "set/": b"", "settings.txt": b"not of it"}) as bucket:
        souk.variables.update(bucket.environment())
        assert told in train(souk, tmp_path, "s3://souk-data/set/").stderr
        assert sum(line == "souk-data/" for line in bucket.asked) == 21  # pages of two
        done = train(souk, tmp_path, "s3://souk-data/nothing/", code=3)
        assert "s3://souk-data/nothing/: there are no files below it" in done.stderr
        bucket.objects["set/../../outside.png"] = b"x"
        done = train(souk, tmp_path, "s3://souk-data/set/", code=2)
        assert "it holds a file whose name is none here" in done.stderr
    with Hadoop({"/user/" + name: body for name, body in files.items()}) as hadoop:
        souk.variables["HADOOP_USER_NAME"] = "me"
        assert told in train(souk, tmp_path, hadoop.address("/user/set/")).stderr


# ---- HDFS -------------------------------------------------------------------------------------------


def test_a_file_of_hdfs_is_read_from_its_data_node(souk, tmp_path, scratch):
    with Hadoop({"/user/me/the rows.csv": rows()}, cuts={"/user/me/the rows.csv": 2}) as hadoop:
        done = train(souk, tmp_path, hadoop.address("/user/me/the rows.csv"), code=5)
        assert "HADOOP_USER_NAME names who asks" in done.stderr
        souk.variables["HADOOP_USER_NAME"] = "me"
        assert_trained(train(souk, tmp_path, hadoop.address("/user/me/the rows.csv")))
        assert hadoop.data.asked.count("OPEN /user/me/the rows.csv") == 3
        done = train(souk, tmp_path, hadoop.address("/user/me/nothing.csv"), code=3)
        assert "there is no such file" in done.stderr


# ---- The market -------------------------------------------------------------------------------------


def test_a_market_learns_neither_address_nor_secrets(souk, tmp_path, scratch):
    market = Market(tmp_path / "market")
    try:
        token = market.sign_up("borrower")
        souk.variables.update(SOUK_TOKEN=token, SOUK_SERVER=market.url)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            tar.addfile(tarfile.TarInfo("code/"), None)
            entry = tarfile.TarInfo("hello.py")
            entry.size = 12
            tar.addfile(entry, io.BytesIO(b"print('hi')\n"))
        with Bucket({"private/rows.csv": rows(), "private/code.tar.gz": archive.getvalue(),
                     "private/page.tar.gz": b"<html>"}) as bucket:
            secrets = "secrets: {%s}\n" % ", ".join(f'{k}: "{v}"' for k, v in bucket.environment().items())
            job = tmp_path / "job.yaml"
            job.write_text(JOB.format(data="s3://souk-data/private/rows.csv", secrets=secrets))
            number = souk("job", "submit", "-y", "-d", job).stdout.strip()
            shown = [souk("job", "show", number, "--json").stdout]
            assert json.loads(shown[0])["spec"]["train"]["data"] == "rows.csv"

            command = "name: code\nrun: python3 hello.py\nworkdir: s3://souk-data/private/%s\n" + secrets
            job.write_text(command % "code.tar.gz")
            shown.append(souk("job", "submit", "-y", "-d", "--json", job).stdout)
            assert [i["name"] for i in json.loads(shown[1])["spec"]["inputs"]] == ["files"]
            job.write_text(command % "page.tar.gz")
            done = souk("job", "submit", "-y", "-d", job, code=8)
            assert "page.tar.gz: it is no archive" in done.stderr
            (tmp_path / "rows.csv").write_bytes(rows())
            job.write_text(JOB.format(data=tmp_path / "rows.csv", secrets=secrets))
            assert "train.data has none" in souk("job", "submit", "-y", "-d", job, code=2).stderr
            native = {**json.loads(shown[0])["spec"], "secrets": {"A": "b"}}
            answer = market.post("/v1/jobs", native, token)
            assert answer.status == 400 and b"programs of your own" in answer.body
            everything = b"".join(path.read_bytes() for path in (tmp_path / "market").rglob("*") if path.is_file())
            for word in (bucket.secret_key, bucket.access_key, "souk-data", "private/"):
                assert word not in shown[0] + shown[1] and word.encode() not in everything, word
    finally:
        market.stop()
