"""A job of functions whose store is an S3 that is not ours: moto, which checks signatures and keeps to If-None-Match;
and functions behind Lambda's API.

covers function/object_store_s3.c, function/invoker_http.c, source/remote_object.c, peer/carrier.c
"""
import http.server
import json
import pathlib
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from functions import FunctionLender, Host, write_job  # noqa: E402
from serving import HUNG_S, Market, audit  # noqa: E402
from signatures import is_signed  # noqa: E402
from test_real_servers import FOLDER, s3, souk  # noqa: E402,F401
from training import job_spec, wait_for  # noqa: E402

LOOK = """
import json, sys, boto3
url, key, secret = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret)
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="souk-data")
json.dump([o["Key"] for page in pages for o in page.get("Contents", [])], sys.stdout)
"""


def objects(souk):  # noqa: F811
    names = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    done = subprocess.run([FOLDER / "moto/bin/python", "-c", LOOK, *(souk.variables[name] for name in names)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_functions_and_lead_meet_in_s3(souk, s3, tmp_path):  # noqa: F811
    s3({})
    job = write_job(tmp_path, batch=500, epochs=2)
    result = json.loads(souk("function", "train", job, "--store", "s3://souk-data/jobs/of mine", "--functions", 4,
                             "--memory", 512, "--span", 6, "--keep-updates", "--json", "-o", tmp_path / "model").stdout)
    assert result["end"] == "epochs" and result["failures"] == 0
    assert result["samples"] == 2 * 60000
    found = objects(souk)
    updates = [key for key in found if key.startswith(f"jobs/of mine/updates/{result['job']}/")]
    assert len(updates) == result["calls"] == 40
    assert f"jobs/of mine/models/{result['job']}/newest" in found
    # The same job again is the same; another under its name is not taken.
    other = write_job(tmp_path, batch=250)
    done = souk("function", "train", other, "--store", "s3://souk-data/jobs/of mine", "--resume", result["job"], "-o",
                tmp_path / "other", code=4)
    assert "another job" in done.stderr
    souk.variables["AWS_SECRET_ACCESS_KEY"] = "wrong"
    done = souk("function", "train", job, "--store", "s3://souk-data/jobs", "-o", tmp_path / "model", code=5)
    assert "AWS_SECRET_ACCESS_KEY is not that of AWS_ACCESS_KEY_ID" in done.stderr


# ---- Lambda's API: signed, in front of a host of ours -------------------------------------------------

class SignedApi(http.server.ThreadingHTTPServer):
    """Passes calls whose signature (SigV4, service lambda) is right on to a function host. A configuration is
    taken only at the second look, as Lambda's is."""

    def __init__(self, host, key, secret):
        super().__init__(("127.0.0.1", 0), SignedHandler)
        self.host, self.key, self.secret = host, key, secret
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.looks, self.refused = 0, 0


class SignedHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not is_signed(self, body, self.server.key, self.server.secret, "lambda"):
            self.server.refused += 1
            status, headers, reply = 403, {}, b'{"message":"The request signature does not match"}'
        else:
            sent = {name: value for name, value in self.headers.items() if name.startswith("X-Amz-")}
            status, headers, reply = self.server.host.ask(self.path, body or None, self.command, sent)
            if self.path.endswith("/configuration"):
                self.server.looks += 1
                if self.server.looks % 2:
                    reply = reply.replace(b'"Successful"', b'"InProgress"')
        self.send_response(status)
        for name, value in headers.items():
            if name.startswith("X-Am"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = do_PUT = answer


def test_lambdas_api_is_called_with_signatures(souk, s3, tmp_path):  # noqa: F811
    s3({})
    key, secret = souk.variables["AWS_ACCESS_KEY_ID"], souk.variables["AWS_SECRET_ACCESS_KEY"]
    job = write_job(tmp_path, batch=2000, epochs=2)
    with Host(souk, "--network", "--memory", "512") as host:
        api = SignedApi(host, key, secret)
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        options = [job, "--lambda", "--url", api.url, "--store", "s3://souk-data/souk", "--functions", 2, "--memory",
                   512, "--json", "-o", tmp_path / "model"]
        try:
            result = json.loads(souk("function", "train", *options).stdout)
            assert result["end"] == "epochs" and result["samples"] == 2 * 60000
            assert result["failures"] == 0 and result["billed_ms"] > 0 and result["cold_starts"] > 0
            assert api.looks == 4 and api.refused == 0
            # Another secret at the API than at the store.
            api.secret = "another"
            assert "403" in souk("function", "train", *options, code=5).stderr
            assert api.refused == 1
        finally:
            api.shutdown()
            thread.join()
            api.server_close()


def test_lambdas_functions_are_lent(souk, s3, tmp_path):  # noqa: F811
    s3({})
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")
    keys = {name: souk.variables[name] for name in names}
    market = Market(tmp_path / "market")
    token = market.sign_up("borrower")
    with Host(souk, "--network", "--memory", "128") as host:
        api = SignedApi(host, keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        lender = FunctionLender(market, market.sign_up("lender"), tmp_path / "lender", "--function-memory", "512",
                                "--function-lambda", "--function-url", api.url, "--function-store",
                                "s3://souk-data/souk", variables=keys)
        try:
            wait_for("the machine", lambda: any(
                m["name"] == "functions" and m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
            spec = job_spec(market, token, 1, max_hourly_cost=1)  # more than is posted, as Lambda takes more
            spec["resources"] = {"cpus": "0.2+", "memory": "1", "labels": "function"}
            job = market.post("/v1/jobs", spec, token).json["id"]
            done = wait_for("the job's end", lambda: (lambda j: j if j["ended_ms"] else None)(
                market.get(f"/v1/jobs/{job}", token).json))
        finally:
            lender.stop()
            api.shutdown()
            thread.join()
            api.server_close()
            market.stop()
    assert done["state"] == "succeeded" and api.refused == 0, done
    called = next(lease for lease in done["leases"] if lease["role"] == "worker")
    assert called["samples"] > 0 and 0 < called["billed_ms"] < called["ended_ms"] - called["started_ms"]
    assert audit(market.folder)[0] == 0
    # It took all of it away but what calls left that nobody waited for.
    assert [key for key in objects(souk) if not key.startswith("souk/updates/")] == []


def test_s3_keeps_to_what_every_kind_of_store_does(souk, s3):  # noqa: F811
    """The unit tests of stores, on an S3 that is not ours: forty who put once at the same time among them."""
    s3({})
    test = pathlib.Path(souk.program).resolve().parent / "object_store_test"
    if not test.exists():
        pytest.skip("unit tests are not built")
    done = subprocess.run([test], env={**souk.variables, "SOUK_STORE": "s3://souk-data/contract"}, capture_output=True,
                          text=True, timeout=HUNG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [key for key in objects(souk) if key.startswith("contract/")]
