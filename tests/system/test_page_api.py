"""What the page asks for beyond what the command line does: catalogues, a job file checked by the market,
built-in data from the market's own copies, chunks that the market names, what runs on one's machine.

covers server/audits.c, server/datasets.c, server/handle_catalogue.c, server/handle_earnings.c, server/handle_job_file.c
covers server/handle_lease.c, server/handle_log.c, server/handle_quote.c, server/live_events.c
"""
import io
import json
import pathlib
import random
import tarfile
import time

import pytest

from serving import Follower, Market, audit
from tfevents_file import read_scalars
from training import job_spec, running, wait_for

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
needs_fashion = pytest.mark.skipif(not FASHION.exists(), reason="dataset-fashion-mnist is not installed")

FILE = """# A job file as the page would send it.
name: clothes
num_nodes: 1
resources: {cpus: 0.1+, memory: 0.2+}
train:
  model: logistic
  data: fashion-mnist
  epochs: 1
  target: {accuracy: 0.5}
sync: {policy: adsp, gamma: 1s, tick: 1s}
market: {max_run_time: 2m, max_total_cost: 1}
"""


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    yield market
    assert market.stop() == 0
    status, text = audit(market.folder)
    assert status == 0, text


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A market, its tokens and its folder. Two machines lend, free and on their first terms."""
    folder = tmp_path_factory.mktemp("place")
    with running(folder) as (market, token, lender_token, _):
        yield market, token, lender_token, folder


def free(place):
    market, token, _, _ = place
    wait_for("both machines", lambda: 2 == sum(
        m["availability"] == "free" and m["name"] != "market" for m in market.get("/v1/machines", token).json["items"]))
    return place


def test_catalogues_say_what_there_is(market):
    sets = {one["name"]: one for one in market.get("/v1/datasets").json["items"]}
    assert set(sets) == {"cifar10", "fashion-mnist", "mnist"}
    fashion = sets["fashion-mnist"]
    assert fashion["licence"] == "MIT" and fashion["train_records"] == 60000 and fashion["classes"] == 10
    assert fashion["is_here"] == FASHION.exists()
    assert [part["name"] for part in fashion["parts"]] == ["train-images", "train-labels", "test-images", "test-labels"]
    assert not sets["mnist"]["is_here"] and not sets["cifar10"]["is_here"] and sets["cifar10"]["parts"] == []
    models = {one["name"]: one for one in market.get("/v1/models").json["items"]}
    assert models["lenet5"]["parameters"] == 61706 and models["lenet5"]["input"] == [1, 28, 28]
    assert models["cifar-cnn"]["parameters"] == 148298
    assert models["mlp"]["spec"]["layers"][0] == {"type": "dense", "outputs": 256}
    assert models["char-lstm"]["takes"] == "tokens" and models["lenet5"]["takes"] == "images"
    assert "layers" not in models


def test_a_job_file_is_checked_with_all_its_mistakes(market):
    token = market.sign_up("borrower")
    wrong = market.call("POST", "/v1/jobs/check", FILE.replace("epochs: 1", "epochs: no").replace("1s", "fast"), token)
    assert wrong.status == 200 and not wrong.json["is_valid"]
    places = {(one["line"], one["field"]) for one in wrong.json["mistakes"]}
    assert {(8, "train.epochs"), (10, "sync.gamma"), (10, "sync.tick")} <= places
    assert all(one["text"] and "job:" not in one["text"] for one in wrong.json["mistakes"])
    assert wrong.json["spec"] is None and wrong.json["quote"] is None and wrong.json["slots"] is None
    torn = market.call("POST", "/v1/jobs/check", "name: [", token).json
    assert not torn["is_valid"] and torn["mistakes"][0]["line"] >= 1
    assert market.call("POST", "/v1/jobs/check", "x" * 70000, token).status == 413
    assert market.call("POST", "/v1/jobs/check", FILE).status == 401
    late = market.call("POST", "/v1/jobs/check", FILE.replace("max_total_cost: 1", 'start: "by 2020-01-01T00:00Z"'), token)
    assert [one["field"] for one in late.json["mistakes"]] == ["market.start"]


def test_a_checked_job_file_says_what_it_costs_in_each_slot(market):
    token = market.sign_up("borrower")
    checked = market.call("POST", "/v1/jobs/check", FILE, token).json
    assert checked["is_valid"] and checked["mistakes"] == []
    assert checked["needs"] == ([] if FASHION.exists() else ["data"])
    quote = market.post("/v1/quotes", checked["spec"], token).json
    assert checked["quote"]["wish_microcredits"] == quote["wish_microcredits"] == checked["held_microcredits"]
    assert not checked["quote"]["can_start"] and checked["quote"]["reason"]
    prices = market.get("/v1/prices").json
    later = [slot for slot in prices["slots"] if slot["state"] != "ended"]
    assert [slot["slot"] for slot in checked["slots"]] == [slot["slot"] for slot in later]
    assert checked["slots"][0]["state"] == "running" and len(checked["slots"]) == 9
    assert all(slot["wish_microcredits"] > 0 for slot in checked["slots"])
    # What it answers, as YAML or as JSON, is the same job.
    for same in (checked["yaml"], json.dumps(checked["spec"])):
        assert market.call("POST", "/v1/jobs/check", same, token).json["spec"] == checked["spec"]
    command = "name: own\nworkdir: ./code\nrun: |\n  set -e\n  python3 main.py\n"
    checked = market.call("POST", "/v1/jobs/check", command, token).json
    assert checked["is_valid"] and checked["needs"] == ["workdir"]
    assert "run: |\n  set -e\n  python3 main.py\n" in checked["yaml"]
    assert market.get("/v1/jobs", token).json["items"] == []


@needs_fashion
def test_built_in_data_need_no_upload(place, tmp_path):
    market, token, _, _ = free(place)
    spec = market.call("POST", "/v1/jobs/check", FILE, token).json["spec"]
    made = market.post("/v1/jobs", spec, token, key="once")
    assert made.status == 201, made
    again = market.post("/v1/jobs", spec, token, key="once")
    assert again.status == 201 and again.json["id"] == made.json["id"]
    known = {one["name"]: one for one in market.get("/v1/datasets").json["items"]}["fashion-mnist"]
    assert {i["name"]: i["manifest"] for i in made.json["spec"]["inputs"]} == {
        part["name"]: part["manifest"] for part in known["parts"]}
    job = made.json["id"]
    ended = wait_for("the job's end", lambda: (lambda one: one["state"] in ("succeeded", "failed") and one)(
        market.get(f"/v1/jobs/{job}", token).json))
    assert ended["state"] == "succeeded", ended["reason"]
    assert ended["test_accuracy"] > 0.5
    # Another account reuses the imported dataset.
    other = market.sign_up("other")
    assert market.post("/v1/jobs", {**spec, "name": "again"}, other).status == 201
    # The job's file can be submitted again, and its curve downloaded.
    file = market.get(f"/v1/jobs/{job}/file", token)
    assert file.status == 200 and 'filename="clothes.yaml"' in file.headers["Content-Disposition"]
    assert b"inputs" not in file.body
    repeated = market.call("POST", "/v1/jobs/check", file.body, token).json
    assert repeated["is_valid"] and repeated["spec"] == spec and repeated["needs"] == []
    assert market.get(f"/v1/jobs/{job}/file", other).status == 404
    metrics = market.get(f"/v1/jobs/{job}/metrics", token).json
    board = market.get(f"/v1/jobs/{job}/tensorboard", token)
    assert f'.job-{job}"' in board.headers["Content-Disposition"]
    folder = tmp_path / "board"
    folder.mkdir()
    (folder / board.headers["Content-Disposition"].split('"')[1]).write_bytes(board.body)
    accuracies = [(step, value) for tag, step, value in read_scalars(folder) if tag == "test/accuracy"]
    assert accuracies == [(point["samples"], pytest.approx(point["test_accuracy"], abs=1e-5))
                          for point in metrics["curve"] if point["test_accuracy"] is not None]
    assert market.get(f"/v1/jobs/{job}/tensorboard", other).status == 404
    worker = [one for one in metrics["workers"] if one["role"] == "worker"][0]
    assert worker["first_step_ms"] > 0 and worker["commits"] > 0
    times = {name: worker[name] for name in ("compute_ms", "transfer_ms", "wait_ms")}
    assert times["compute_ms"] > 0 and min(times.values()) >= 0
    assert sum(times.values()) == pytest.approx(worker["at_ms"] - worker["first_step_ms"], abs=1000)
    lease = [one for one in ended["leases"] if one["id"] == worker["lease"]][0]
    assert {name: lease[name] for name in times} == times


def test_a_copy_that_is_another_data_set_is_refused(tmp_path):
    folder = tmp_path / "sets" / "mnist"
    folder.mkdir(parents=True)
    for name, head in (("train-images-idx3-ubyte", "00000803000000020000001c0000001c"),
                       ("t10k-images-idx3-ubyte", "00000803000000020000001c0000001c")):
        (folder / name).write_bytes(bytes.fromhex(head) + bytes(2 * 784))
    for name in ("train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"):
        (folder / name).write_bytes(bytes.fromhex("0000080100000002") + bytes(2))
    market = Market(tmp_path / "market", "--no-local-lender", "--datasets", str(folder.parent))
    try:
        token = market.sign_up("borrower")
        sets = {one["name"]: one for one in market.get("/v1/datasets").json["items"]}
        assert sets["mnist"]["is_here"]
        spec = {"name": "digits", "train": {"model": "logistic", "data": "mnist"}}
        for _ in range(2):
            refused = market.post("/v1/jobs", spec, token)
            assert refused.status == 500 and market.get("/v1/jobs", token).json["items"] == []
    finally:
        assert market.stop() == 0
    assert "is not that data set" in pathlib.Path(f"{market.folder}.log").read_text()


def test_a_market_names_chunks_for_who_cannot_hash(market):
    token, other = market.sign_up("borrower"), market.sign_up("other")
    first = market.call("POST", "/v1/chunks", b"some bytes", token)
    assert first.status == 201 and len(first.json["hash"]) == 64
    again = market.call("POST", "/v1/chunks", b"some bytes", token)
    assert again.status == 200 and again.json == first.json
    assert market.get(f"/v1/chunks/{first.json['hash']}", token).body == b"some bytes"
    assert market.get(f"/v1/chunks/{first.json['hash']}", other).status == 404
    assert market.call("POST", "/v1/chunks", b"", token).status == 400
    assert market.call("POST", "/v1/chunks", b"x", token, headers={"Content-Encoding": "zstd"}).status == 415
    assert market.call("POST", "/v1/chunks", bytes((4 << 20) + 1), token).status == 413
    assert market.call("POST", "/v1/chunks", b"x").status == 401


def test_code_comes_as_an_archive_that_a_browser_can_make(place):
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w:gz") as tar:
        for name, data in (("code/main.sh", b"echo hello from the archive\n"), ("code/noise", random.Random(1).randbytes(5 << 20))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    archive = room.getvalue()
    market, token, _, _ = free(place)
    def send(data):
        answer = market.call("POST", "/v1/chunks", data, token)
        assert answer.status in (200, 201), answer
        return answer.json["hash"]

    parts = [archive[at:at + (4 << 20)] for at in range(0, len(archive), 4 << 20)]
    assert len(parts) == 2
    manifest = send(json.dumps({
        "media_type": "application/x-tar+gzip", "size": len(archive), "header_bytes": 0, "record_bytes": 1,
        "record_count": len(archive), "header": "",
        "chunks": [{"hash": send(part), "size": len(part)} for part in parts]}, separators=(",", ":")).encode())
    made = market.post("/v1/jobs", {
        "name": "own", "run": "sh code/main.sh", "resources": {"cpus": "0.1+", "memory": "0.1+"}, "market": {"max_run_time": "60s"},
        "inputs": [{"name": "files", "split": "files", "manifest": manifest, "records": len(archive)}]}, token)
    assert made.status == 201, made
    job = made.json["id"]
    ended = wait_for("the job's end", lambda: (lambda one: one["ended_ms"] and one)(market.get(f"/v1/jobs/{job}", token).json))
    assert ended["state"] == "succeeded", ended["reason"]
    wait_for("its log", lambda: "hello from the archive" in market.get(f"/v1/jobs/{job}/logs", token).json["text"])
    # The job's file names the archive, so you can run it again.
    again = market.call("POST", "/v1/jobs/check", market.get(f"/v1/jobs/{job}/file", token).body, token).json
    assert again["needs"] == [] and market.post("/v1/jobs", again["spec"], token).status == 201


def test_an_owner_sees_what_runs_on_the_machine_and_nobody_else_does(place):
    market, token, lender_token, _ = free(place)
    answer = market.post("/v1/jobs", job_spec(market, token, 2, min_time="2s"), token)
    assert answer.status == 201, answer
    machines = [m for m in market.get("/v1/machines?mine=true", lender_token).json["items"]]
    machine = machines[0]["id"]

    def leases(state):
        return market.get(f"/v1/machines/{machine}/leases?state={state}", lender_token).json["items"]

    lease = wait_for("a lease that runs and was metered", lambda: [
        one for one in leases("running") if one["cpu_ms"] > 0])[0]
    assert lease["machine"] == machine and lease["job"] == answer.json["id"]
    assert lease["loss"] is None and lease["steps"] == 0 and lease["steps_per_second"] is None
    assert market.get(f"/v1/machines/{machine}/leases", token).status == 403
    assert market.get("/v1/machines/999999/leases", lender_token).status == 404
    assert market.get(f"/v1/machines/{machine}/leases?state=idle", lender_token).status == 400
    ended = wait_for("the lease's end", lambda: [one for one in leases("ended") if one["id"] == lease["id"]])
    assert ended[0]["earned_microcredits"] > 0

    # The hours and the days each add up to the machine's earnings.
    wait_for("the job's end", lambda: market.get(f"/v1/jobs/{answer.json['id']}", token).json["ended_ms"])
    earned = market.get(f"/v1/machines/{machine}", lender_token).json["earned_microcredits"]
    assert earned > 0
    for bucket, count in (("day", 30), ("hour", 48)):
        shown = market.get(f"/v1/machines/{machine}/earnings?bucket={bucket}", lender_token).json
        assert len(shown["items"]) == count and shown["is_whole"]
        assert shown["earned_microcredits"] == earned == sum(i["earned_microcredits"] for i in shown["items"])
        assert sum(i["busy_ms"] for i in shown["items"]) == sum(one["billed_ms"] for one in leases("ended"))
    three = market.get(f"/v1/machines/{machine}/earnings?count=3&offset_ms=3600000", lender_token).json["items"]
    assert len(three) == 3 and all((i["start_ms"] + 3600000) % 86400000 == 0 for i in three)
    assert three[0]["end_ms"] == three[1]["start_ms"]
    assert market.get(f"/v1/machines/{machine}/earnings", token).status == 403
    for wrong in ("bucket=week", "count=0", "count=745", "offset_ms=1e9"):
        assert market.get(f"/v1/machines/{machine}/earnings?{wrong}", lender_token).status == 400


def test_an_estimate_follows_from_prices_and_hours(tmp_path):
    with running(tmp_path) as (market, token, lender_token, _):
        machine = market.get("/v1/machines?mine=true", lender_token).json["items"][0]
        path = f"/v1/machines/{machine['id']}/estimate"

        def estimate(**terms):
            answer = market.post(path, terms, lender_token)
            assert answer.status == 200, answer
            return answer.json

        day_ms = 24 * 3600 * 1000
        core = {"cores_milli": machine["probe"]["cores_milli"], "ram_bytes": 0, "disk_bytes": 0}
        always = estimate(**core)
        assert always["days"] == 30 and always["open_ms"] == 30 * day_ms and always["likely_microcredits"] is None
        price = market.get("/v1/prices").json
        assert not machine["reputation"]["is_proven"]  # its speed counts as the reference's at most
        units = core["cores_milli"] * min(1000, machine["probe"]["speed_weight_milli"]) // 1000
        whole = 720 * units * price["core_hour_microcredits"] // 1000
        whole -= whole * price["fee_basis_points"] // 10000
        assert abs(always["full_microcredits"] - whole) <= 8
        night = estimate(**core, when="Mon-Sun 0-6", zone="UTC")
        assert abs(night["open_ms"] - 30 * day_ms // 4) <= 6 * 3600 * 1000
        by_hours = {slot["hours"]: slot for slot in night["slots"]}
        assert by_hours["12-18"]["open_ms"] == 0 and by_hours["00-06"]["core_used_milli"] is None
        dear = estimate(**core, minimum={"core_micro": price["core_hour_microcredits"] + 1})
        assert dear["full_microcredits"] == 0 and all(slot["is_dear"] for slot in dear["slots"])
        assert market.post(path, {}, token).status == 403
        assert market.post(path, {"cores_milli": 10**9}, lender_token).status == 400
        assert market.post(path, {"when": "Mon-Fry"}, lender_token).status == 400
        assert market.post("/v1/machines/999999/estimate", {}, lender_token).status == 404
        offer = market.get(f"/v1/machines/{machine['id']}/offers", token).json["items"][0]
        assert offer["when"] == "always" and offer["grid"] == ["1" * 24] * 7
        for when, grid in (("Mon-Fri 18-6", ["0" * 18 + "1" * 6] + ["1" * 6 + "0" * 12 + "1" * 6] * 4 + ["1" * 6 + "0" * 18] + ["0" * 24]),
                           ("Mon 9:30-10", None)):
            changed = market.call("PATCH", f"/v1/offers/{offer['id']}", {"when": when, "zone": "Europe/Berlin"}, lender_token)
            assert changed.status == 200 and changed.json["grid"] == grid, changed
        week = ["0" * 18 + "1" * 6] + ["1" * 8 + "0" * 10 + "1" * 6] * 4 + ["1" * 8 + "0" * 16] + ["0" * 24]
        changed = market.call("PATCH", f"/v1/offers/{offer['id']}", {"grid": week}, lender_token).json
        assert changed["when"] == "Mon-Fri 18:00-08:00" and changed["grid"] == week and changed["zone"] == "Europe/Berlin"
        every_other = ["01" * 12] + ["0" * 24] * 6
        for wrong in ({"grid": week[1:]}, {"grid": ["2" * 24] * 7}, {"grid": ["0" * 24] * 7}, {"grid": every_other},
                      {"grid": week, "when": "always"}):
            refused = market.call("PATCH", f"/v1/offers/{offer['id']}", wrong, lender_token)
            assert refused.status == 400 and "offer.grid" in refused.json["detail"], refused
        assert estimate(**core, grid=["1" * 24] * 7)["open_ms"] == 30 * day_ms


def test_lines_of_a_log_are_found(place):
    market, token, lender_token, _ = free(place)
    script = "i=0; while [ $i -lt 3000 ]; do echo line $i of many; i=$((i+1)); done; printf 'Needle without end'"
    made = market.post("/v1/jobs", {"name": "talk", "resources": {"cpus": "0.1+", "memory": "0.1+"}, "run": script,
                                    "market": {"max_run_time": "60s"}}, token)
    assert made.status == 201, made
    job = made.json["id"]
    wait_for("the job's end", lambda: market.get(f"/v1/jobs/{job}", token).json["state"] == "succeeded")
    path = f"/v1/jobs/{job}/logs/lines"

    def find(text, offset=0):
        return market.get(f"{path}?find={text}&offset={offset}", token).json

    wait_for("the whole log", lambda: find("needle")["is_end"])
    needle = find("needle")
    assert [line["text"] for line in needle["lines"]] == ["Needle without end"]
    assert [line["text"] for line in find("line%202999")["lines"]] == ["line 2999 of many"]
    many = find("OF%20MANY")
    assert len(many["lines"]) == 200 and not many["is_end"]
    more = find("of%20many", many["next_offset"])
    assert more["lines"][0]["text"] == "line 200 of many"
    part = market.get(f"/v1/jobs/{job}/logs?offset={more['lines'][0]['offset']}", token).json
    assert part["text"].startswith("line 200 of many\n")
    assert find("nothing%20like%20it")["lines"] == []
    for wrong, status in (("", 400), ("?find=" + "x" * 201, 400), ("?find=x&offset=no", 400), ("?find=x&rank=7", 404)):
        assert market.get(path + wrong, token).status == status
    assert market.get(f"{path}?find=x", lender_token).status == 404


def test_a_log_is_read_from_its_end(place):
    """While it is printed, of memory and disk together; at its end, of the disk alone."""
    def read_back(step):
        parts, before = [], None
        while before != 0:
            part = last(step, before)
            assert part["offset"] < part["next_offset"] and part["next_offset"] == (before or part["next_offset"])
            assert len(part["text"].encode()) == part["next_offset"] - part["offset"] <= step
            parts.insert(0, part["text"])
            before = part["offset"]
        return parts

    market, token, _, folder = free(place)
    lines = [f"line {i} of m\u00fcch\n" for i in range(9000)]
    script = ("mkfifo on; exec 3<>on; i=0; while [ $i -lt 9000 ]; do echo line $i of m\u00fcch; i=$((i+1)); "
              "[ $i = 8000 ] && sleep 6; done\n"  # clock: meanwhile the market puts what it has in memory on disk
              "read -r _ <&3; printf without-end")
    made = market.post("/v1/jobs", {"name": "talk", "resources": {"cpus": "0.1+", "memory": "0.1+"}, "run": script,
                                    "market": {"max_run_time": "120s"}}, token)
    assert made.status == 201, made
    job = made.json["id"]
    path = f"/v1/jobs/{job}/logs?"

    def last(bytes_, before=None):
        return market.get(f"{path}last={bytes_}" + (f"&before={before}" if before is not None else ""), token).json

    wait_for("its last line", lambda: last(100).get("text", "").endswith("line 8999 of m\u00fcch\n"))
    assert last(100)["text"].startswith("line 89") and not last(100)["is_end"]
    for step in (5000, 100_000):
        parts = read_back(step)
        assert "".join(parts) == "".join(lines) and len(parts) > 1 and all(part.startswith("line ") for part in parts)
    end = last(100)["next_offset"]
    (work,) = folder.glob("*/leases/*/lease/work")
    (work / "on").write_text("\n")
    wait_for("the job's end", lambda: market.get(f"/v1/jobs/{job}", token).json["state"] == "succeeded")
    wait_for("all of it", lambda: last(5)["text"] == "t-end")
    assert last(1000)["text"].endswith(" of m\u00fcch\nwithout-end")
    assert "".join(read_back(50_000)) == "".join(lines) + "without-end"
    assert last(1, end + 1)["text"] == "w" and last(10, 0)["text"] == "" and last(10, 0)["next_offset"] == 0
    # An offset inside a character starts at the next one.
    at = len("line 0 of m".encode())
    assert last(2, at + 3)["text"] == "c" and last(3, at + 3)["text"] == "\u00fcc"
    for wrong in ("last=0", "last=262145", "last=x", "before=5", "last=5&offset=3", "last=5&before=-1"):
        assert market.get(path + wrong, token).status == 400, wrong


def test_an_operator_has_the_books_audited_while_the_market_runs(market):
    operator, token = market.operator_token(), market.sign_up("member")
    assert market.get("/v1/audits", operator).json == {"state": "none", "started_ms": 0, "ended_ms": 0, "report": None}
    for _ in range(2):
        started = market.post("/v1/audits", {}, operator)
        assert started.status == 202 and started.json["started_ms"] > 0
        done = wait_for("the audit", lambda: (lambda one: one["state"] != "running" and one)(
            market.get("/v1/audits", operator).json))
        assert done["state"] == "done" and done["report"]["is_sound"], done
        assert done["report"]["ledger_sum_microcredits"] == 0 and done["report"]["findings"] == []
        assert done["ended_ms"] >= done["started_ms"]
    for method in ("GET", "POST"):
        assert market.call(method, "/v1/audits", None, token).status == 403
        assert market.call(method, "/v1/audits").status == 401
    assert market.post("/v1/audits", {}, operator).status == 202  # one that runs when the market stops


def test_the_schema_of_a_job_file_is_there(market):
    schema = market.get("/v1/schemas/job")
    assert schema.headers["Content-Type"] == "application/schema+json"
    assert "train" in schema.json["properties"] and schema.json["$schema"].startswith("https://json-schema.org")


def test_a_machine_is_paused_until_an_instant(place):
    market, token, lender_token, _ = free(place)
    machine = market.get("/v1/machines?mine=true", lender_token).json["items"][0]["id"]

    def pause(**body):
        return market.post(f"/v1/machines/{machine}/pause", body, lender_token)

    def yields():
        return market.get(f"/v1/machines/{machine}", lender_token).json["yield"]

    def until(path=f"/v1/machines/{machine}", as_token=lender_token):
        shown = market.get(path, as_token).json
        return next(one for one in shown.get("items", [shown]) if one["id"] == machine)["paused_until_ms"]

    now_ms = int(time.time() * 1000)
    for wrong in ({"until_ms": now_ms - 1}, {"until_ms": now_ms + 367 * 86400000}, {"until_ms": now_ms + 60000, "for_ms": 60000}):
        assert pause(**wrong).status == 400
    assert until() == 0 and pause().status == 200
    wait_for("the pause", lambda: yields() == "paused_remotely", step=0.05)
    assert until() == 0  # until the owner resumes it
    owner = Follower(market, lender_token)
    at_ms = now_ms + 3600_000
    assert pause(until_ms=at_ms).status == 200
    told = owner.until(lambda data: data.get("machine") == machine and data.get("paused_until_ms"))[-1][1]
    shown = until()
    assert abs(shown - at_ms) < 2000 and told["paused_until_ms"] == shown == until("/v1/machines?mine=true")
    assert until(as_token=token) == 0 == until("/v1/machines", token)  # others do not see the end of a pause
    now_ms = int(time.time() * 1000)
    assert pause(until_ms=now_ms + 4000).status == 200
    wait_for("the shorter pause", lambda: 0 < until() < at_ms - 60_000, step=0.05)
    wait_for("its end by itself", lambda: yields() == "none")
    assert time.time() * 1000 >= now_ms + 3900 and until() == 0


def test_a_lender_hears_of_leases_on_its_machines_and_nobody_elses_affairs(place):
    market, token, lender_token, _ = free(place)
    stranger_token = market.sign_up("stranger")
    mine = {machine["id"] for machine in market.get("/v1/machines?mine=true", lender_token).json["items"]}
    lender, stranger = Follower(market, lender_token), Follower(market, stranger_token)
    job = market.post("/v1/jobs", job_spec(market, token, 2, min_time="2s"), token).json["id"]
    wait_for("the job's end", lambda: market.get(f"/v1/jobs/{job}", token).json["ended_ms"])
    leases = [lease for lease in market.get(f"/v1/jobs/{job}", token).json["leases"] if lease["machine"] in mine]
    open_leases = {lease["id"] for lease in leases}
    assert len(open_leases) >= 2

    def all_ended(data):
        if data.get("state") == "ended":
            open_leases.discard(data["lease"])
        return not open_leases
    heard = [data for _, data in lender.until(all_ended)]
    for lease in leases:
        own = [data for data in heard if data.get("lease") == lease["id"]]
        states = [data["state"] for data in own if "state" in data]
        assert {"running", "ended"} <= set(states) and states[-1] == "ended", states
        paid = sum(data["amount_microcredits"] for data in own if data.get("change") == "post")
        assert paid == lease["earned_microcredits"] > 0
    # The lender hears nothing of the job's training, spending or own state.
    assert all(data["machine"] in mine for data in heard if data.get("job")), heard
    assert not any({"loss", "spent_microcredits", "text"} & set(data) for data in heard), heard
    beats = [data for data in heard if "load_milli" in data]
    assert beats and {data["machine"] for data in beats} <= mine
    # A stranger hears only the table's data of a machine. The pause comes last.
    one = min(mine)
    assert market.post(f"/v1/machines/{one}/pause", {}, lender_token).status == 200
    events = stranger.until(lambda data: data["machine"] == one and market.get(f"/v1/machines/{one}", token).json["yield"] == "paused")
    assert all(data["job"] == 0 and data["lease"] == 0 and "state" in data for _, data in events), events


def test_the_operator_is_told_apart(market):
    assert market.get("/v1/account", market.operator_token()).json["is_operator"]
    assert not market.get("/v1/account", market.sign_up("member")).json["is_operator"]
