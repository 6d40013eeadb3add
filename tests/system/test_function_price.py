"""The least price of lent functions: Lambda's own by the market's rate, or what --function-price says.

covers cli/lend_function_price.c, server/handle_meta.c
"""
import http.server
import json
import pathlib
import re
import threading

import pytest
from functions import FunctionLender
from serving import Market
from training import wait_for

KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
GIB_S = {"x86_64": 0.0000166667, "arm64": 0.0000133334}


class Control(http.server.ThreadingHTTPServer):
    """The part of Lambda that configures a function."""

    def __init__(self, architecture):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps({**sent, "LastUpdateStatus": "Successful", "Architectures": [architecture]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.options = ("--function-lambda", "--function-url", f"http://127.0.0.1:{self.server_port}", "--function-store",
                        "s3://bucket/souk")
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def __exit__(self, *error):
        self.shutdown()
        self.thread.join()
        super().__exit__(*error)


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "market")
    yield market
    market.stop()


def lend(market, folder, *options, name="functions", **variables):
    return FunctionLender(market, market.sign_up(name), folder / name, "--function-memory", "512", *options, name=name,
                          variables={**KEYS, "HOME": str(folder), **variables})


def least(market, lender, name="functions"):
    """Of a GiB with its share of a core, an hour; and what the daemon said of it."""
    token = market.sign_up(f"looks-at-{name}")
    offer = wait_for("the machine", lambda: next(
        (m["offer"] for m in market.get("/v1/machines", token).json["items"]
         if m["name"] == name and m["state"] == "online"), None))
    said = re.findall(r'function_price least="(\S+) credits" of="GiB-hour" from="([^"]+)"', pathlib.Path(lender.log_path).read_text())
    return offer["minimum"]["core_micro"] * 1024 / 1769 + offer["minimum"]["ram_micro"], said


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_lambda_s_own_price_is_the_least(market, tmp_path, architecture):
    rate = market.get("/v1/server").json["credits_micro_per_usd"]
    assert rate > 0
    with Control(architecture) as control:
        lender = lend(market, tmp_path, *control.options)
        try:
            micro, said = least(market, lender)
        finally:
            lender.stop()
    # Its seconds, and 7200 calls of each of the two functions in a GiB.
    wanted = (3600 * GIB_S[architecture] + 2 * 7200 * 0.2e-6) * rate
    assert wanted - 1 <= micro <= wanted + 5 + rate / 10**6, (micro, wanted)
    ((amount, words),) = said
    assert float(amount) == pytest.approx(wanted / 10**6, rel=1e-3)
    assert f"of {architecture} in us-east-1" in words and "a dollar counts for" in words


def test_a_catalogue_s_price_of_the_region_is_taken(market, tmp_path):
    catalogue = tmp_path / "catalogue.csv"
    catalogue.write_text(
        "catalogue,1\ndate,2026-08-22\nsource,a page\n"
        "instance_type,region,architecture,vcpus,memory_mib,gpu,gpus,bandwidth_mbps,usd_per_hour,spot_usd_per_hour_min,"
        "spot_usd_per_hour_max,interruption_percent\n"
        "m5.large,eu-central-2,x86_64,2,8192,,,750,0.12,,,\n"
        "function,region,architecture,usd_per_million_gib_s,usd_per_million_calls,memory_mib_min,memory_mib_max,"
        "memory_mib_per_vcpu\n"
        "lambda,eu-central-2,x86_64,20,0.2,128,10240,1769\n")
    rate = market.get("/v1/server").json["credits_micro_per_usd"]
    with Control("x86_64") as control:
        lender = lend(market, tmp_path, *control.options, "--function-catalog", catalogue, AWS_REGION="eu-central-2")
        try:
            micro, ((_, words),) = least(market, lender)
        finally:
            lender.stop()
    assert (0.072 + 0.00288) * rate - 1 <= micro <= (0.072 + 0.00288) * rate + 5, micro
    assert "in eu-central-2" in words


def test_what_is_given_comes_first(market, tmp_path):
    rate = market.get("/v1/server").json["credits_micro_per_usd"]
    with Control("x86_64") as control:
        for name, price, micro in [("none", "0", 0), ("credits", "0.5", 500000), ("dollars", "$0.06", 0.06 * rate)]:
            lender = lend(market, tmp_path, *control.options, "--function-price", price, name=name)
            try:
                found, ((_, words),) = least(market, lender, name)
            finally:
                lender.stop()
            assert micro - 1 <= found <= micro + 3 and "--function-price" in words, (name, found, words)
    # In dollars for functions of this machine, too.
    lender = lend(market, tmp_path, "--function-price", "$0.01", name="here")
    try:
        assert 0.01 * rate - 1 <= least(market, lender, "here")[0] <= 0.01 * rate + 3
    finally:
        lender.stop()


def test_karma_has_none(tmp_path):
    market = Market(tmp_path / "market", "--economy", "karma")
    try:
        assert market.get("/v1/server").json["credits_micro_per_usd"] == 0
        with Control("x86_64") as control:
            lender = lend(market, tmp_path, *control.options)
            try:
                assert least(market, lender) == (0, [("0.000000", "the market is one of karma")])
            finally:
                lender.stop()
    finally:
        market.stop()


def test_a_machine_that_is_known_starts_while_its_market_is_away(market, tmp_path):
    with Control("x86_64") as control:
        lender = lend(market, tmp_path, *control.options)
        try:
            least(market, lender)
            lender.stop()
            market.kill()
            lender.start({**lender.variables, "PATH": "/usr/bin:/bin", "SOUK_LEND_CODE": "used-up"})
            wait_for("its start", lambda: "function_price_kept" in pathlib.Path(lender.log_path).read_text())
            assert lender.process.poll() is None
        finally:
            lender.stop()
            market.start()


def test_a_wrong_price_is_refused(souk, tmp_path):
    for price in ("cheap", "$", "-1", "$-1", "2000000"):
        done = souk("lend", "--functions", 1, "--function-price", price, "--server", "http://127.0.0.1:9", "--code", "x",
                    "--state-dir", tmp_path / "lend", code=2)
        assert "--function-price" in done.stderr
