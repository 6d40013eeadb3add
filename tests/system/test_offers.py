"""Lending terms end to end: offers made, changed, paused and withdrawn on real machines.

covers server/handle_offer.c, server/offer_body.c, server/view_offer.c, server/projection_offer.c
covers server/renewal.c, cli/command_offer.c, cli/offer_terms.c, cli/machine_find.c
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import time
import types

import pytest

from serving import HUNG_S, PROGRAM, Market, audit
from terminal import screen
from training import Lender, job_spec, running, submit, wait_for

NOBODY_RESUMES = 253402300799999
SCHEMAS = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/openapi/openapi.json")
                     .read_text())["components"]["schemas"]


class Lending:
    """A market and one machine that lends to it."""

    def __init__(self, folder):
        self.market = Market(folder / "market", "--no-local-lender")
        self.token = self.market.sign_up("owner")
        self.other = self.market.sign_up("other")
        self.lender = Lender(self.market, self.token, folder / "lender", "heron")
        self.machine = wait_for("the machine", self.find_online)

    def find_online(self):
        online = [m for m in self.market.get("/v1/machines", self.token).json["items"]
                  if m["state"] == "online"]
        return online and online[0]["id"]

    def make(self, body, token=None):
        return self.market.post(f"/v1/machines/{self.machine}/offers", body, token or self.token)

    def made(self, **body):
        answer = self.make(body)
        assert answer.status == 201, answer
        return answer.json

    def offers(self):
        return self.market.get(f"/v1/machines/{self.machine}/offers", self.token).json["items"]

    def withdraw(self, offer):
        return self.market.call("DELETE", f"/v1/offers/{offer['id']}", token=self.token)

    def daemon_log(self):
        return pathlib.Path(self.lender.log_path).read_text()


@pytest.fixture(scope="module")
def lending(tmp_path_factory):
    made = Lending(tmp_path_factory.mktemp("lending"))
    yield made
    made.lender.stop()
    assert made.market.stop() == 0
    status, text = audit(made.market.folder)
    assert status == 0, text


@pytest.fixture
def offer(lending):
    made = lending.made(cores_milli=100, ram_bytes=1 << 20, disk_bytes=1 << 20)
    yield made
    lending.withdraw(made)


def test_a_new_machine_has_one_offer_of_all_it_lends(lending):
    [first] = lending.offers()
    assert set(first) == set(SCHEMAS["LentOffer"]["properties"])
    assert first["state"] == "open" and first["state_until_ms"] == 0
    assert first["cores_milli"] == 500 and first["when"] == "always"
    assert first["audience"] == "anyone" and first["network"] == "job"
    machine = lending.market.get(f"/v1/machines/{lending.machine}", lending.token).json
    assert set(machine) == set(SCHEMAS["Machine"]["properties"])
    assert (machine["offer_count"], machine["offer_state"]) == (1, "open")
    assert machine["probe"]["cores_milli"] == 500  # what souk lend was told is the ceiling


def test_an_offer_has_all_the_terms_of_its_owner(lending):
    made = lending.made(
        cores_share_milli=500, ram_bytes=64 << 20, disk_share_milli=100, bandwidth_kbit=20000,
        roles=["worker"], minimum={"core_micro": 20000}, max_lease_ms=8 * 3600000,
        when="monday-friday 18-8", zone="Europe/Berlin", accounts=["other", "owner"],
        network="job", install="wheels", labels="python3-torch,cuda-12")
    assert made["cores_milli"] == 250 and made["ram_bytes"] == 64 << 20
    assert made["bandwidth_kbit"] == 20000 and made["roles"] == ["worker"]
    assert made["minimum"] == {"core_micro": 20000, "ram_micro": 0, "gpu_micro": 0, "disk_micro": 0}
    assert (made["when"], made["zone"]) == ("Mon-Fri 18:00-08:00", "Europe/Berlin")
    assert made["state"] in ("open", "closed") and made["state_until_ms"] > time.time() * 1000
    assert made["audience"] == "accounts" and made["accounts"] == ["owner", "other"]
    assert (made["network"], made["install"]) == ("job", "wheels")
    assert made["labels"] == "python3-torch,cuda-12" and made["max_lease_ms"] == 28800000
    assert lending.market.get(f"/v1/offers/{made['id']}", lending.token).json == made
    seen = lending.market.get(f"/v1/offers/{made['id']}", lending.other).json
    assert seen["accounts"] == [] and seen["is_mine"] is False  # whom it is for is the owner's business
    assert made in lending.market.get("/v1/offers?mine=true", lending.token).json["items"]
    assert lending.market.get("/v1/offers?mine=true", lending.other).json["items"] == []
    assert lending.withdraw(made).status == 204
    assert lending.market.get(f"/v1/offers/{made['id']}", lending.token).status == 404


def test_offers_whose_unsold_time_is_given_away_are_found(lending):
    sold, given = lending.made(spare=False), lending.made(spare=True)

    def found(query):
        return {each["id"] for each in lending.market.get(f"/v1/offers?{query}", lending.other).json["items"]}
    assert given["id"] in found("spare=true") and sold["id"] not in found("spare=true")
    assert sold["id"] in found("spare=false") and given["id"] not in found("spare=false")
    assert {sold["id"], given["id"]} <= found("")
    assert lending.market.get("/v1/offers?spare=1", lending.other).status == 400
    for made in (sold, given):
        assert lending.withdraw(made).status == 204


def test_the_daemon_is_told_of_every_change_at_once(lending):
    def told():
        return re.findall(r" offers count=(\d+)", lending.daemon_log())

    before = len(told())  # what was told of the test before may still be on its way
    made = lending.made(cores_milli=50)
    lending.market.call("PATCH", f"/v1/offers/{made['id']}", {"cores_milli": 60}, lending.token)
    lending.withdraw(made)
    wait_for("three messages", lambda: len(told()) >= before + 3 and told()[-3:] == ["2", "2", "1"],
             step=0.05)


def test_a_change_keeps_what_it_does_not_name_and_a_replacement_does_not(lending, offer):
    path = f"/v1/offers/{offer['id']}"
    changed = lending.market.call("PATCH", path, {
        "when": "Sat-Sun 0-24", "zone": "America/New_York", "labels": "a,b", "accounts": ["other"],
    }, lending.token).json
    assert changed["cores_milli"] == 100 and changed["labels"] == "a,b"
    assert changed["zone"] == "America/New_York" and changed["audience"] == "accounts"
    moved = lending.market.call("PATCH", path, {"zone": "Asia/Kolkata"}, lending.token).json
    assert (moved["when"], moved["zone"]) == ("Sat-Sun 00:00-24:00", "Asia/Kolkata")
    assert moved["accounts"] == ["other"]
    hours = lending.market.call("PATCH", path, {"when": "Sun 9-10"}, lending.token).json
    assert (hours["when"], hours["zone"]) == ("Sun 09:00-10:00", "Asia/Kolkata")
    anyone = lending.market.call("PATCH", path, {"audience": "anyone"}, lending.token).json
    assert anyone["accounts"] == [] and anyone["when"] == "Sun 09:00-10:00"
    replaced = lending.market.call("PUT", path, {"cores_milli": 200}, lending.token).json
    assert replaced["cores_milli"] == 200 and replaced["when"] == "always"
    assert replaced["labels"] == "" and replaced["state"] == "open"


BAD_TERMS = [
    ('{"cores_milli": 100, "colour": "red"}', "colour"),
    ('{"cores_milli": NaN}', ""),
    ('{"cores_milli": 1e400}', "cores_milli"),
    ('{"cores_milli": 9223372036854775808}', "cores_milli"),
    ('{"cores_milli": -1}', "cores_milli"),
    ('{"cores_milli": 0}', "cores_milli"),
    ('{"cores_milli": 501}', "cores_milli: 501 is more than the machine has to lend, 500"),
    ('{"gpus_milli": 1000}', "gpus_milli"),
    ('{"ram_bytes": 4503599627370497}', "ram_bytes"),
    ('{"cores_milli": 100, "cores_share_milli": 100}', "cores"),
    ('{"cores_share_milli": 1001}', "cores_share_milli"),
    ('{"minimum": {"core_micro": -5}}', "minimum.core_micro"),
    ('{"minimum": {"core_micro": 9999999999999}}', "minimum.core_micro"),
    ('{"max_lease_ms": -1}', "max_lease_ms"),
    ('{"when": "Mon-Fry 18:00-08:00"}', 'offer.when: at character 5 of the schedule: "Fry" is not '
                                        'a day of the week; did you mean \\"Fri\\"?'),
    ('{"when": "2020-01-01 10:00 - 2020-01-02 10:00"}', "offer.when: the schedule never opens"),
    ('{"when": "Mon 9-9"}', "offer.when"),
    ('{"when": "Mon 9-17", "zone": "Europe/Berln"}', 'did you mean \\"Europe/Berlin\\"?'),
    ('{"when": "Mon 9-17", "zone": "../../etc/passwd"}', "offer.zone"),
    ('{"when": "Mon 9-17 UTC", "zone": "Europe/Berlin"}', "offer.zone"),
    ('{"zone": "Europe/Berlin"}', "offer.zone: the offer is open always"),
    ('{"roles": []}', "roles"),
    ('{"roles": ["king"]}', "king"),
    ('{"accounts": ["nobody-here"]}', "offer.accounts"),
    ('{"accounts": []}', "offer.accounts"),
    ('{"group": "nobody-here"}', "offer.group"),
    ('{"audience": "group"}', "offer.group"),
    ('{"audience": "anyone", "accounts": ["other"]}', "offer.accounts"),
    ('{"audience": "friends"}', "audience"),
    ('{"network": "all"}', "network"),
    ('{"labels": "a,,b"}', "labels"),
    ('{"labels": "a,b,a"}', 'offer.labels: "a" is there twice'),
    ('{"accounts": ["other", "owner", "other"]}', 'offer.accounts: "other" is there twice'),
    ('{"when": "2027-02-30 10:00 - 2027-03-02 10:00"}', "2027-02-30 is no day"),
    ('[]', ""),
    ('{', ""),
]


@pytest.mark.parametrize("body,words", BAD_TERMS)
def test_bad_terms_are_refused_by_name_and_change_nothing(lending, body, words):
    before = lending.offers()
    answer = lending.make(body)
    assert answer.status == 400, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert words.replace('\\"', '"') in answer.json["detail"].replace('\\"', '"'), answer
    changed = lending.market.call("PATCH", f"/v1/offers/{before[0]['id']}", body, lending.token)
    assert changed.status == 400, changed
    assert lending.offers() == before


def test_the_first_offer_keeps_what_a_change_of_the_machine_does_not_name(lending):
    market, path = lending.market, f"/v1/machines/{lending.machine}/offer"
    [first] = lending.offers()
    terms = {"accounts": ["other"], "labels": "cuda-12", "max_lease_ms": 3600000,
             "when": "Mon-Fri 18:00-08:00", "zone": "Europe/Berlin", "network": "job",
             "install": "wheels", "minimum": {"core_micro": 7, "ram_micro": 8}}
    changed = market.call("PATCH", f"/v1/offers/{first['id']}", terms, lending.token).json
    body = {"cores_milli": 250, "ram_bytes": first["ram_bytes"], "disk_bytes": first["disk_bytes"],
            "roles": ["worker"], "minimum": {"ram_micro": 9}}
    answer = market.call("PUT", path, body, lending.token)
    assert answer.status == 200 and answer.json["offer"]["cores_milli"] == 250, answer
    [after] = lending.offers()
    wanted = {**changed, "cores_milli": 250, "roles": ["worker"],
              "minimum": {**changed["minimum"], "ram_micro": 9}}
    assert after == {**wanted, "state": after["state"], "state_until_ms": after["state_until_ms"]}
    paused = market.call("PUT", path, {**body, "paused": True}, lending.token)
    assert paused.json["offer"]["paused"] is True
    assert market.call("PUT", path, body, lending.token).json["offer"]["paused"] is True
    resumed = market.call("PUT", path, {**body, "paused": False}, lending.token)
    assert resumed.json["offer"]["paused"] is False
    for wrong in ({"paused": "yes"}, {"paused": None}, {"gpus_milli": -1}, {"minimum": {"x": 1}},
                  {"minimum": {"core_micro": -1}}, {"cores_milli": 1 << 62}, {"roles": ["king"]}):
        refused = market.call("PUT", path, {**body, **wrong}, lending.token)
        assert refused.status == 400 and next(iter(wrong)).rstrip("s") in refused.json["detail"], refused
    assert market.call("PUT", path, body, lending.other).status == 403
    assert lending.offers()[0]["cores_milli"] == 250
    usual = {key: first[key] for key in ("cores_milli", "ram_bytes", "disk_bytes", "roles", "minimum",
                                         "max_lease_ms", "when", "audience", "network",
                                         "install", "labels")}
    back = market.call("PATCH", f"/v1/offers/{first['id']}", usual, lending.token)
    assert back.status == 200, back
    assert lending.offers() == [first]


def test_machines_are_found_by_their_name(lending):
    market = lending.market
    [found] = market.get("/v1/machines?name=heron", lending.token).json["items"]
    assert found["id"] == lending.machine
    assert market.get("/v1/machines?name=heron&mine=true", lending.other).json["items"] == []
    assert market.get("/v1/machines?name=nobody", lending.token).json["items"] == []


def test_offers_are_changed_by_their_owner_alone(lending, offer):
    path = f"/v1/offers/{offer['id']}"
    assert lending.make({"cores_milli": 10}, lending.other).status == 403
    assert lending.market.call("PATCH", path, {"labels": "mine"}, lending.other).status == 403
    assert lending.market.post(f"{path}/pause", {}, lending.other).status == 403
    assert lending.market.call("DELETE", path, token=lending.other).status == 403
    assert lending.market.call("PATCH", "/v1/offers/999999", {}, lending.token).status == 404
    assert lending.market.post("/v1/machines/999999/offers", {}, lending.token).status == 404
    assert lending.market.get(path, lending.token).json == offer


def test_a_repeated_request_makes_one_offer(lending):
    path = f"/v1/machines/{lending.machine}/offers"
    first = lending.market.post(path, {"cores_milli": 10}, lending.token, key="once")
    again = lending.market.post(path, {"cores_milli": 10}, lending.token, key="once")
    other = lending.market.post(path, {"cores_milli": 11}, lending.token, key="once")
    assert (first.status, again.status, other.status) == (201, 201, 409)
    assert first.json["id"] == again.json["id"]
    assert lending.withdraw(first.json).status == 204


def test_a_machine_has_at_most_sixteen_offers(lending):
    made = [lending.made(cores_milli=1) for _ in range(15)]
    assert lending.make({"cores_milli": 1}).status == 409, "the seventeenth"
    for one in made:
        assert lending.withdraw(one).status == 204


def test_pauses_last_a_while_until_a_time_or_until_resumed(lending, offer):
    path = f"/v1/offers/{offer['id']}"
    now_ms = int(time.time() * 1000)
    paused = lending.market.post(f"{path}/pause", {}, lending.token).json
    assert (paused["state"], paused["paused_until_ms"]) == ("paused", NOBODY_RESUMES)
    assert paused["state_until_ms"] == 0
    resumed = lending.market.post(f"{path}/resume", {}, lending.token).json
    assert (resumed["state"], resumed["paused_until_ms"]) == ("open", 0)
    until = lending.market.post(f"{path}/pause", {"until_ms": now_ms + 3600000}, lending.token).json
    assert (until["state"], until["state_until_ms"]) == ("paused", now_ms + 3600000)
    short = lending.market.post(f"{path}/pause", {"for_ms": 700}, lending.token).json
    assert short["state"] == "paused" and now_ms < short["paused_until_ms"] < now_ms + 60000
    wait_for("the end of the pause", lambda: "open" == lending.market.get(path, lending.token)
             .json["state"], step=0.05)
    for body, words in (({"until_ms": now_ms - 1}, "pause.until_ms"), ({"for_ms": 0}, "pause.for_ms"),
                        ({"for_ms": 1, "until_ms": now_ms + 9999}, "not both")):
        refused = lending.market.post(f"{path}/pause", body, lending.token)
        assert refused.status == 400 and words in refused.json["detail"], refused


def test_a_span_opens_and_closes_by_itself(lending, offer):
    path = f"/v1/offers/{offer['id']}"
    opens, closes = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + wait))
                     for wait in (2, 4))
    planned = lending.market.call("PATCH", path, {"when": f"{opens} - {closes}"}, lending.token).json
    assert planned["state"] == "closed" and planned["when"].startswith(opens[:16]), planned

    def state():
        return lending.market.get(path, lending.token).json["state"]

    wait_for("the opening", lambda: state() == "open", step=0.05)
    wait_for("the closing", lambda: state() == "closed", step=0.05)
    assert lending.market.get(path, lending.token).json["state_until_ms"] == 0


def test_offers_and_their_schedules_outlive_a_restart(tmp_path):
    lending = Lending(tmp_path)
    try:
        lending.made(cores_milli=10, when="Mon-Fri 18-8", zone="Europe/Berlin", labels="a,b")
        before = lending.offers()
        assert lending.market.stop() == 0
        lending.market.start()
        wait_for("the machine again", lambda: lending.offers() == before)
        assert len(before) == 2
    finally:
        lending.lender.stop()
        lending.market.stop()


def test_less_lent_on_the_machine_shrinks_its_offers(tmp_path):
    lending = Lending(tmp_path)
    try:
        made = lending.made(cores_milli=50)
        lending.lender.stop()
        lending.lender.command += ["--cores", "0.2", "--memory", "128MiB"]
        lending.lender.start()

        def cores():
            return sorted(offer["cores_milli"] for offer in lending.offers())

        wait_for("the smaller offer", lambda: cores() == [50, 200], step=0.05)
        machine = lending.market.get(f"/v1/machines/{lending.machine}", lending.token).json
        assert machine["probe"]["cores_milli"] == 200
        assert lending.make({"cores_milli": 201}).status == 400
        assert all(offer["ram_bytes"] <= 128 << 20 for offer in lending.offers())
        assert made["id"] in {offer["id"] for offer in lending.offers()}
    finally:
        lending.lender.stop()
        lending.market.stop()


def lease_of(market, token, job, role="worker"):
    leases = [lease for lease in market.get(f"/v1/jobs/{job}", token).json["leases"]
              if lease["role"] == role and lease["state"] == "running"]
    return leases and leases[0]


def test_what_runs_keeps_its_terms_while_offers_change(tmp_path):
    with running(tmp_path) as (market, token, lender_token, _):
        job = submit(market, token, 1)
        lease = wait_for("a running worker", lambda: lease_of(market, token, job), step=0.05)
        [offer] = market.get(f"/v1/machines/{lease['machine']}/offers", lender_token).json["items"]
        path = f"/v1/offers/{offer['id']}"
        assert offer["lease_count"] == 1
        smaller = market.call("PATCH", path, {"cores_milli": 10}, lender_token).json
        assert smaller["cores_milli"] == 10 and smaller["leased_cores_milli"] == lease["cores_milli"]
        paused = market.post(f"{path}/pause", {}, lender_token).json
        assert paused["state"] == "paused" and paused["lease_count"] == 1
        # All others are paused too: no second job finds a worker.
        others = [o for o in market.get("/v1/offers?mine=true", lender_token).json["items"]
                  if o["id"] != offer["id"]]
        for other in others:
            market.post(f"/v1/offers/{other['id']}/pause", {}, lender_token)
        second = submit(market, token, 1)
        assert market.get(f"/v1/jobs/{second}", token).json["state"] == "pending"
        assert market.call("DELETE", path, token=lender_token).status == 204
        done = wait_for("the first job", lambda: (lambda j: j["state"] in ("succeeded", "failed")
                        and j)(market.get(f"/v1/jobs/{job}", token).json))
        assert done["state"] == "succeeded", done
        ended = [one for one in done["leases"] if one["id"] == lease["id"]]
        assert ended[0]["outcome"] == "succeeded" and ended[0]["earned_microcredits"] > 0
        assert market.get(f"/v1/jobs/{second}", token).json["state"] == "pending"
        # Resumed, the waiting job starts by that event.
        market.post(f"/v1/offers/{others[0]['id']}/resume", {}, lender_token)
        wait_for("the second job's worker", lambda: lease_of(market, token, second))
        market.post(f"/v1/jobs/{second}/cancel", {}, token)
        wait_for("its end", lambda: market.get(f"/v1/jobs/{second}", token).json["state"]
                 == "cancelled")


EXCLUDING_TERMS = [
    ("a span that ends before the job might", {"when": "SOON"}),
    ("a span that has not begun", {"when": "2099-01-01 00:00 - 2099-01-02 00:00"}),
    ("a longest lease shorter than the job", {"max_lease_ms": 59999}),
    ("an audience without the borrower", {"accounts": ["lender"]}),
    ("a minimum above the price", {"minimum": {"core_micro": 1000000000}}),
    ("less than the job needs", {"cores_milli": 50}),
]


def test_jobs_are_placed_only_where_the_terms_allow(tmp_path):
    with running(tmp_path) as (market, token, lender_token, _):
        spec = job_spec(market, token, 1)
        workers = [o for o in market.get("/v1/offers?mine=true", lender_token).json["items"]]
        assert len(workers) == 2

        def quote():
            answer = market.post("/v1/quotes", spec, token)
            assert answer.status == 200, answer
            return answer.json

        def change(terms):
            for offer in workers:
                answer = market.call("PATCH", f"/v1/offers/{offer['id']}", terms, lender_token)
                assert answer.status == 200, answer

        assert quote()["can_start"] is True
        for name, terms in EXCLUDING_TERMS:
            if terms.get("when") == "SOON":
                terms = {"when": " - ".join(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
                                            for at in (time.time(), time.time() + 50))}  # clock: the offer's opening hours
            change(terms)
            assert quote()["can_start"] is False, name
            for offer in workers:
                market.call("PUT", f"/v1/offers/{offer['id']}", {"roles": ["worker"]}, lender_token)
            assert quote()["can_start"] is True, name


def test_changes_at_the_same_time_do_not_undo_each_other(lending, offer):
    path = f"/v1/offers/{offer['id']}"
    changes = [{"labels": "a"}, {"cores_milli": 33}, {"network": "open"}, {"install": "index"},
               {"when": "Sun 9-10"}, {"max_lease_ms": 5000}, {"accounts": ["other"]},
               {"minimum": {"gpu_micro": 7}}]
    with concurrent.futures.ThreadPoolExecutor(len(changes)) as pool:
        answers = list(pool.map(lambda body: lending.market.call("PATCH", path, body, lending.token),
                                changes))
    assert [answer.status for answer in answers] == [200] * len(changes)
    changed = lending.market.get(path, lending.token).json
    assert (changed["labels"], changed["cores_milli"], changed["network"]) == ("a", 33, "open")
    assert (changed["install"], changed["when"], changed["max_lease_ms"]) == (
        "index", "Sun 09:00-10:00", 5000)
    assert changed["accounts"] == ["other"] and changed["minimum"]["gpu_micro"] == 7


# ---- The command line --------------------------------------------------------------------------


def souk(lending, *words, token=None, **environment):
    done = subprocess.run(
        [PROGRAM, *words, "--server", lending.market.url],
        env={**os.environ, "SOUK_TOKEN": token or lending.token, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HUNG_S)
    return done.returncode, done.stdout, done.stderr


def offer_words(offer):
    until = time.strftime("%F %TZ", time.gmtime(offer["state_until_ms"] / 1000))
    return f"{offer['state']} until {until}"


def test_an_open_offer_of_a_machine_that_is_away_is_not_called_open(tmp_path):
    lending = Lending(tmp_path)
    try:
        [offer] = lending.offers()
        assert offer["machine_state"] == "online"
        lending.lender.stop()
        wait_for("the farewell", lambda: lending.offers()[0]["machine_state"] == "offline")
        assert lending.offers()[0]["state"] == "open"
        shown = souk(lending, "offer", "list")[1].splitlines()[1]
        assert " offline " in shown and "open" not in shown
        assert "State:     offline\n" in souk(lending, "offer", "show", str(offer["id"]))[1]
    finally:
        lending.lender.stop()
        lending.market.stop()


def test_the_command_line_makes_changes_pauses_and_withdraws(lending):
    code, out, err = souk(lending, "offer", "make", "heron", "--cores", "50%", "--memory", "64MiB",
                          "--when", "Mon-Fri 18-8", "--max-lease", "8h", "--min-price", "core=0.02",
                          "--for", "other", "--network", "job", "--labels", "torch", "-y", "--json",
                          TZ="Europe/Berlin")
    assert code == 0, err
    assert "0.25, 50% of 0.5" in err and "Mon-Fri 18:00-08:00 Europe/Berlin" in err
    made = json.loads(out)
    assert (made["cores_milli"], made["zone"], made["accounts"]) == (250, "Europe/Berlin", ["other"])
    assert made["minimum"]["core_micro"] == 20000 and made["max_lease_ms"] == 28800000
    number = str(made["id"])

    code, out, err = souk(lending, "offer", "list")
    assert code == 0 and "Mon-Fri 18:00-08:00 Europe/Berlin" in out and number in out
    code, out, err = souk(lending, "offer", "show", number)
    assert code == 0 and all(f"{line}\n" in out for line in (
        "State:     " + offer_words(made), "Longest:   8h", "Least:     core=0.020000 credits an hour",
        "For:       other", "Runs:      worker, server", "Network:   job", "Labels:    torch")), out
    code, out, err = souk(lending, "offer", "change", number, "--when", "always", "--for", "anyone", "-y")
    assert code == 0 and out == f"Changed offer {number} of heron: open\n", (out, err)
    code, out, err = souk(lending, "offer", "pause", number, "--for", "1h")
    assert code == 0 and out.startswith(f"Paused offer {number} of heron: paused until 20"), err
    code, out, err = souk(lending, "offer", "pause", number, "--until", "2099-01-01 12:00", "--zone",
                          "Asia/Kolkata")
    assert out == f"Paused offer {number} of heron: paused until 2099-01-01 06:30:00Z\n", err
    user = types.SimpleNamespace(program=PROGRAM, variables={
        **os.environ, "SOUK_TOKEN": lending.token, "SOUK_SERVER": lending.market.url})
    lines, _ = screen(user, 80, "offer", "list")
    assert max(map(len, lines)) <= 80
    assert any("paused until 2099-01-01 06:30:00Z" in line for line in lines), lines
    code, out, err = souk(lending, "offer", "resume", number, "--json")
    assert code == 0 and json.loads(out)["state"] == "open"
    code, out, err = souk(lending, "offer", "withdraw", number)
    assert code == 2 and f"Offer {number} of heron will be withdrawn; 0 leases run" in err
    code, out, err = souk(lending, "offer", "withdraw", number, "-y")
    assert code == 0 and out == f"Withdrew offer {number} of heron\n"
    assert number not in {str(offer["id"]) for offer in lending.offers()}


def test_the_command_line_asks_first_and_refuses_in_one_sentence(lending):
    before = lending.offers()
    code, out, err = souk(lending, "offer", "make", "heron", "--cores", "0.1")
    assert code == 2 and out == "" and "A new offer of heron" in err and "-y" in err
    for words, sentence in (
            (["make", "hern", "-y"], 'lends no machine "hern"'),
            (["make", "heron", "--cores", "9", "-y"], "--cores: 9 is more than the machine has to lend, 0.5"),
            (["make", "heron", "--when", "Mon-Fry 9-17", "-y"], 'did you mean "Fri"?'),
            (["make", "heron", "--network", "all", "-y"], "--network: not one of"),
            (["change", str(before[0]["id"]), "-y"], "nothing to change"),
            (["change", "999999", "--cores", "1", "-y"], "offer 999999 does not exist"),
            (["pause", str(before[0]["id"]), "--for", "1h", "--until", "2099-01-01 10:00"], "not both"),
            (["pause", str(before[0]["id"]), "--until", "soon"], "--until")):
        code, out, err = souk(lending, "offer", *words)
        assert code != 0 and out == "" and sentence in err, (words, err)
    assert lending.offers() == before


def test_machines_show_whether_their_offers_are_open(lending):
    [first] = lending.offers()
    path = f"/v1/offers/{first['id']}"
    assert "free" in souk(lending, "machines")[1]
    assert '"heron"' in souk(lending, "machines", "show", str(lending.machine))[1]
    assert souk(lending, "machines", "show", "hern")[0] == 3
    lending.market.post(f"{path}/pause", {"until_ms": 4070908800000}, lending.token)
    assert "paused until 2099-01-01 00:00:00Z" in souk(lending, "machines")[1]
    lending.market.post(f"{path}/resume", {}, lending.token)
    lending.market.call("PATCH", path, {"when": "2099-01-01 00:00 - 2099-01-02 00:00"}, lending.token)
    assert "closed until 2099-01-01 00:00:00Z" in souk(lending, "machines")[1]
    lending.market.call("PATCH", path, {"when": "always"}, lending.token)
    assert "free" in souk(lending, "machines")[1]
