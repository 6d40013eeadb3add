"""The catalogue of a cloud's machines: the one that comes with the program, and others that are read.

covers cli/command_cloud_catalogue.c
"""
import gzip
import http.server
import json
import os
import pathlib
import threading

import pytest

DATA = pathlib.Path(os.environ.get("SOUK_DATA", "/nonexistent")) / "cloud-prices"
SMALL = """catalogue,1
date,2020-01-31
source,"a price list, printed"
instance_type,region,architecture,vcpus,memory_mib,gpu,gpus,bandwidth_mbps,usd_per_hour,spot_usd_per_hour_min,spot_usd_per_hour_max,interruption_percent
x9.huge,mars-1,arm64,64,131072,T9,0.5,,12.5,3.25,4,20-100
"""


def types(souk, *arguments):
    return json.loads(souk("cloud", "catalog", "--json", *arguments).stdout)


def test_the_program_has_one_of_its_own(souk):
    own = types(souk)
    assert own["date"] and own["source"] and len(own["types"]) > 36
    by_name = {row["type"]: row for row in own["types"]}
    assert by_name["m5.large"]["usd_micro_per_hour"] == 96000
    assert {row["function"] for row in own["functions"]} == {"lambda"}
    assert all(row["gpu"] for row in types(souk, "--gpu")["types"])
    shown = souk("cloud", "catalog", "show", "g4dn.xlarge").stdout
    assert "1 × T4" in shown and "$0.526 an hour" in shown and own["date"] in shown


def test_what_is_wrong_is_said_with_the_nearest_that_works(souk):
    assert 'did you mean "m5.large"?' in souk("cloud", "catalog", "show", "m5.larg", code=3).stderr
    assert "us-east-1" in souk("cloud", "catalog", "show", "m5.large", "--region", "mars-1", code=3).stderr
    assert "which type" in souk("cloud", "catalog", "show", code=2).stderr
    assert "which file" in souk("cloud", "catalog", "update", code=2).stderr
    assert "cloud catalog show m5.large" in souk("cloud", "catalog", "list", "m5.large", code=2).stderr


def test_an_old_one_is_used_and_said_to_be_old(souk, tmp_path):
    file = tmp_path / "catalogue.csv.gz"
    file.write_bytes(gzip.compress(SMALL.encode()))
    done = souk("cloud", "catalog", "update", file)
    assert "1 types" in done.stderr and "days old" in done.stderr
    listed = souk("cloud", "catalog")
    assert "x9.huge" in listed.stdout and "m5.large" not in listed.stdout
    assert "2020-01-31" in listed.stderr and "days old" in listed.stderr
    assert "days old" not in souk("cloud", "catalog", "--max-age-days", 36500).stderr
    assert types(souk)["types"][0]["gpu_milli"] == 500


def test_a_bad_one_leaves_the_one_before(souk, tmp_path):
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(SMALL)
    souk("cloud", "catalog", "update", good)
    bad.write_text(SMALL.replace("12.5", "-12.5"))
    assert "line 5: usd_per_hour" in souk("cloud", "catalog", "update", bad, code=2).stderr
    assert "first line" in souk("cloud", "catalog", "update", os.devnull, code=2).stderr
    assert "x9.huge" in souk("cloud", "catalog").stdout
    souk("cloud", "catalog", "update", tmp_path / "none.csv", code=3)


def test_one_is_read_from_an_address(souk):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = SMALL.encode()
            self.send_response(200 if self.path == "/catalogue.csv" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        souk("cloud", "catalog", "update", f"{url}/catalogue.csv")
        assert "x9.huge" in souk("cloud", "catalog").stdout
        souk("cloud", "catalog", "update", f"{url}/other.csv", code=3)
        server.shutdown()


@pytest.mark.skipif(not DATA.is_dir(), reason="SOUK_DATA is not set")
def test_aws_s_own_tables_are_read(souk):
    table = DATA / "aws_us-east-1_instances.csv"
    assert "--date" in souk("cloud", "catalog", "update", table, "--from-aws-csv", code=2).stderr
    assert "for --from-aws-csv" in souk("cloud", "catalog", "update", table, "--date", "2026-08-22", code=2).stderr
    done = souk("cloud", "catalog", "update", table, "--from-aws-csv", "--date", "2026-08-22",
                "--spot-advisor", DATA / "aws_spot_advisor.json.gz")
    assert "1354 types" in done.stderr
    read = types(souk)
    assert len(read["types"]) == 1354 and len(read["functions"]) == 2
    by_name = {row["type"]: row for row in read["types"]}
    assert by_name["m6i.2xlarge"]["interruption_percent_min"] == 20
    assert by_name["m7g.large"]["architecture"] == "arm64"
    assert by_name["mac2.metal"]["usd_micro_per_hour"] is None
    listed = souk("cloud", "catalog")
    assert len(listed.stdout.splitlines()) == 101 and "100 of 1354 types" in listed.stderr
    # What came with the program is a part of it.
    (souk.home / ".local/share/souk/market/cloud-catalogue.csv").unlink()
    assert all(by_name[row["type"]] == row for row in types(souk)["types"])
