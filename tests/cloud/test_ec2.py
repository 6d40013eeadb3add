"""Instances of an emulated EC2 that become real lenders here: started, used, and ended, whatever fails.
`make test-cloud` brings moto and sets SOUK_CLOUD.

covers server/cloud.c, server/cloud_news.c, server/cloud_orders.c, server/cloud_seat.c, server/cloud_thread.c, server/cloud_view.c, server/handle_cloud.c, cli/command_cloud.c, client/api_cloud.c
"""
import json
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from program import Souk  # noqa: E402
from emulated import Cloud, Moto, refusal  # noqa: E402
from serving import PROGRAM, Market, audit, own_addresses  # noqa: E402
from training import job_spec, submit, wait_for  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("SOUK_CLOUD", "/nonexistent"))
pytestmark = pytest.mark.skipif(not (FOLDER / "moto/bin/moto_server").exists(), reason="SOUK_CLOUD is not set")

ZONES = ["us-east-1a", "us-east-1b"]


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    moto = Moto(FOLDER / "moto", tmp_path_factory.mktemp("moto"))
    yield moto
    moto.close()


@pytest.fixture
def cloud(moto, tmp_path):
    cloud = Cloud(moto, tmp_path / "cloud", PROGRAM)
    yield cloud
    left = cloud.alive()
    cloud.close()
    assert left == []


class Place:
    def __init__(self, cloud, tmp_path, **settings):
        self.cloud, self.file = cloud, tmp_path / "cloud.json"
        home = tmp_path / "home"
        home.mkdir()
        self.souk = Souk(home)
        self.configure(**settings)
        self.market = Market(tmp_path / "market", "--cloud", str(self.file), *own_addresses())
        self.sign_in()

    def configure(self, **settings):
        settings = {"region": "us-east-1", "zones": ZONES, "image": self.cloud.image, "endpoint_url": self.cloud.url,
                    "instances_max": 4, "usd_per_hour_max": 1.0, "list_s": 1, "boot_s": 120,
                    "access_key_id": self.cloud.key, "secret_access_key": self.cloud.secret, **settings}
        self.file.write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
        self.file.chmod(0o600)

    def sign_in(self):
        self.token = self.market.operator_token()
        self.souk.variables.update(SOUK_SERVER=self.market.url, SOUK_TOKEN=self.token)

    def __call__(self, *arguments, code=0):
        return self.souk("cloud", *arguments, code=code)

    def start(self, *arguments):
        return json.loads(self("start", *arguments, "-y", "--json").stdout)["id"]

    def order(self, number):
        orders = json.loads(self("list", "--json").stdout)["orders"]
        return next(order for order in orders if order["id"] == number)

    def states(self, number):
        return [instance["state"] for instance in self.order(number)["instances"]]

    def wait_for_states(self, number, *states):
        wait_for(f"order {number} to be {states}", lambda: sorted(self.states(number)) == sorted(states))

    def wait_until_done(self, number):
        wait_for(f"order {number} to be done", lambda: self.order(number)["state"] == "done")


@pytest.fixture
def place(cloud, tmp_path):
    places = []

    def make(**settings):
        places.append(Place(cloud, tmp_path, **settings))
        return places[0]

    yield make
    for made in places:
        made.market.stop()


def test_instances_are_started_used_and_ended(place, cloud, tmp_path):
    here = place()
    market = here.market
    ana, bob = market.sign_up("ana"), market.sign_up("bob")
    job = submit(market, ana, 1, max_total_cost=5)  # the machine may ask more than is posted
    order = here.start("m5.large", "-n", 1, "--budget", "$0.2/h", "--for", job)
    here.wait_for_states(order, "ready")
    instance = here.order(order)["instances"][0]
    machine = market.get(f"/v1/machines/{instance['machine']}", here.token).json
    assert machine["name"].startswith("cloud-")
    # It is lent to the job's borrower alone, and at no less than it costs.
    offer = market.get(f"/v1/machines/{machine['id']}/offers", here.token).json["items"][0]
    assert offer["audience"] == "accounts" and offer["accounts"] == ["ana"], offer
    status = json.loads(here("list", "--json").stdout)
    core_hours = offer["cores_milli"] * machine["probe"]["speed_weight_milli"] / 1e6
    hourly = offer["minimum"]["core_micro"] * core_hours
    assert hourly >= 0.096 * status["credits_micro_per_usd"] * 0.999, (offer, machine)
    assert market.get("/v1/machines", bob).status == 200
    wait_for("the job to end", lambda: market.get(f"/v1/jobs/{job}", ana).json["state"] in ("succeeded", "failed"))
    assert market.get(f"/v1/jobs/{job}", ana).json["state"] == "succeeded"
    leases = market.get(f"/v1/jobs/{job}", ana).json["leases"]
    assert any(lease["machine"] == instance["machine"] for lease in leases), leases
    # With the job it ends, and nothing is left.
    here.wait_until_done(order)
    assert "its job has ended" in here.order(order)["reason"]
    assert cloud.alive() == []
    assert cloud.instances[instance["instance"]].process.poll() is not None
    wait_for("its offer to be withdrawn", lambda: not market.get(f"/v1/machines/{machine['id']}/offers", here.token).json["items"])
    listed = here("list", "--all").stdout
    assert instance["instance"] in listed and "gone" in listed
    # Its tags, its group and what it may have seen.
    launch = next(form for action, form in cloud.asked if action == "RunInstances")
    tags = {launch[f"TagSpecification.1.Tag.{n}.Key"]: launch[f"TagSpecification.1.Tag.{n}.Value"] for n in range(1, 6)}
    assert tags["souk-job"] == str(job) and tags["souk-market"]
    groups = cloud.call("ec2.describe_security_groups(GroupIds=['%s'])['SecurityGroups']" % launch["SecurityGroupId.1"])
    assert groups[0]["IpPermissions"] == []
    script = cloud.instances[instance["instance"]].script
    assert f"shutdown -P +{cloud.instances[instance['instance']].shutdowns()[0][4:]}" in script
    seen = script + pathlib.Path(f"{market.folder}.log").read_text() + json.dumps(status)
    assert cloud.key not in seen and cloud.secret not in seen and "SOUK_LEND_CODE='" in script
    code = script.split("SOUK_LEND_CODE='")[1].split("'")[0]
    assert code not in pathlib.Path(f"{market.folder}.log").read_text()
    assert market.post("/v1/machines/codes/check", {"code": code}).status == 403
    # Its bill is in its owner's statement, as a cost and as what was brought in for it.
    entries = wait_for("its bill", lambda: market.get("/v1/account/entries?kind=cost,fund", here.token).json["items"])
    cost = -(-here.order(order)["usd_micro"] * status["credits_micro_per_usd"] // 10**6)
    assert {entry["kind"]: entry["amount_microcredits"] for entry in entries} == {"fund": cost, "cost": -cost}, entries
    assert all(entry["memo"] == f"{instance['instance']} m5.large" for entry in entries)
    assert here.market.stop() == 0
    assert audit(market.folder)[0] == 0


def test_a_job_has_machines_started_for_it(place, cloud):
    here = place(jobs=True, credits_per_usd=5)  # far above the posted price
    market = here.market
    ana = market.sign_up("ana")
    spec = job_spec(market, ana, 1, max_total_cost=5)
    spec.setdefault("resources", {}).update(infra="aws", instance_type="m5.large")
    wrong = {**spec, "resources": {**spec["resources"], "instance_type": "m5.larg"}}
    answer = market.post("/v1/jobs", wrong, ana)
    assert answer.status == 404 and 'did you mean "m5.large"?' in answer.json["detail"], answer
    answer = market.post("/v1/jobs", {**spec, "num_nodes": 5}, ana)
    assert "4 are the most" in answer.json["detail"], answer
    poor = {**spec, "market": {**spec["market"], "max_total_cost": "0.001"}}
    answer = market.post("/v1/jobs", poor, ana)
    assert answer.status == 400 and "cost 0.480000 credits an hour" in answer.json["detail"], answer
    program = {**{name: spec[name] for name in ("name", "num_nodes", "market")}, "run": "true"}
    for job, field, much, words in ((spec, "cpus", "4", "m5.large has 2"), (spec, "memory", "8", "lends 6"),
                                    (program, "accelerators", "T4:1", "has no GPU")):
        more = {**job, "resources": {**spec["resources"], field: much}}
        answer = market.post("/v1/jobs", more, ana)
        assert answer.status == 400 and words in answer.json["detail"], answer
    # It asks for a tenth of a core, and takes, and pays for, the machine that nobody else may use.
    quote = market.post("/v1/quotes", spec, ana).json
    assert quote["wish_hourly_microcredits"] >= 480000 and quote["credits_micro_per_usd"] == 5000000, quote
    answer = market.post("/v1/jobs", spec, ana)
    assert answer.status == 201, answer
    job = answer.json["id"]
    order = wait_for("its order", lambda: json.loads(here("list", "--json").stdout)["orders"])[0]
    assert order["job"] == job and order["count"] == 1
    wait_for("the job to end", lambda: market.get(f"/v1/jobs/{job}", ana).json["state"] in ("succeeded", "failed"))
    done = market.get(f"/v1/jobs/{job}", ana).json
    assert done["state"] == "succeeded", done
    machine = here.order(order["id"])["instances"][0]["machine"]
    lease = next(lease for lease in done["leases"] if lease["machine"] == machine)
    offered = market.get(f"/v1/machines/{machine}", here.token).json["probe"]
    assert lease["cores_milli"] == offered["cores_milli"] >= 2000, (lease, offered)
    assert lease["ram_bytes"] >= 5 << 30, lease
    # Five credits a dollar, $0.096 an hour, each bill rounded down to the microcredit.
    assert lease["billed_ms"] >= 0.9 * (lease["ended_ms"] - lease["started_ms"]), lease
    assert lease["posted_microcredits"] > 480000 * lease["billed_ms"] / 3600000 - lease["ticks"], lease
    here.wait_until_done(order["id"])
    assert cloud.alive() == []


def test_the_plan_says_what_is_started_and_what_a_dollar_is(place, cloud, tmp_path):
    here = place(jobs=True, credits_per_usd=5)
    here.souk.variables.update(SOUK_TOKEN=here.market.sign_up("ana"))
    file = tmp_path / "job.yaml"
    file.write_text("name: hello\nrun: echo hello\nnum_nodes: 2\nmarket: {max_total_cost: 4}\n"
                    "resources: {infra: aws, instance_type: m5.large}\n")
    plan = here.souk("job", "submit", file, code=2).stderr
    assert "cloud     2 x m5.large, started for it; it takes the whole of each" in plan, plan
    assert "rate      $1 of a cloud machine's price is 5" in plan and "0.96" in plan, plan
    assert cloud.alive() == []


def test_jobs_have_none_started_where_the_operator_does_not_say_so(place, cloud):
    here = place()
    ana = here.market.sign_up("ana")
    spec = job_spec(here.market, ana, 1, max_total_cost=5)
    spec.setdefault("resources", {}).update(infra="aws", instance_type="m5.large")
    answer = here.market.post("/v1/jobs", spec, ana)
    assert answer.status == 403 and "starts no machines of a cloud for jobs" in answer.body.decode(), answer
    assert cloud.alive() == [] and here.market.get("/v1/jobs", ana).json["items"] == []


def test_whatever_fails_it_ends_with_what_was_asked_for(place, cloud):
    cloud.faults = {
        "DescribeInstances": [refusal(503, "RequestLimitExceeded"), "cut", "hang up"],
        "DescribeSecurityGroups": [refusal(500, "InternalError")],
        "RunInstances": [refusal(503, "RequestLimitExceeded"), refusal(500, "InsufficientInstanceCapacity"), "cut"],
        "TerminateInstances": [refusal(503, "RequestLimitExceeded"), "after"],
    }
    here = place()
    order = here.start("m5.large", "-n", 1)
    here.wait_for_states(order, "ready")
    # There was none in the first zone.
    assert here.order(order)["instances"][0]["zone"] == "us-east-1b"
    zones = [form["Placement.AvailabilityZone"] for action, form in cloud.asked if action == "RunInstances"]
    assert set(zones[:2]) == {"us-east-1a"} and set(zones[2:]) == {"us-east-1b"}
    # Asked for again by the same token: one is started.
    tokens = [form["ClientToken"] for action, form in cloud.asked if action == "RunInstances"]
    assert len(set(tokens[2:])) == 1 and len(tokens) >= 3
    assert len(cloud.alive()) == 1
    here("stop", order)
    here.wait_until_done(order)
    assert cloud.alive() == [] and not any(cloud.faults.values())


def test_one_that_is_taken_back_is_replaced(place, cloud):
    here = place()
    order = here.start("m5.large", "--spot", "--max-cost", "$0.5")
    here.wait_for_states(order, "ready")
    first = here.order(order)["instances"][0]
    launch = next(form for action, form in cloud.asked if action == "RunInstances")
    assert launch["InstanceMarketOptions.MarketType"] == "spot"
    assert float(launch["InstanceMarketOptions.SpotOptions.MaxPrice"]) * 1e6 == first["usd_micro_per_hour"]
    cloud.call(f"ec2.terminate_instances(InstanceIds=['{first['instance']}'])['ResponseMetadata']['HTTPStatusCode']")
    cloud.instances[first["instance"]].end()
    here.wait_for_states(order, "gone", "ready")
    here("stop", "all")
    here.wait_until_done(order)
    assert cloud.alive() == []


def infra_spec(market, token, nodes, **options):
    spec = job_spec(market, token, nodes, max_total_cost=5, **options)
    spec["resources"].update(infra="aws", instance_type="m5.large")
    return spec


def tokens_asked(cloud):
    return {form["ClientToken"] for action, form in cloud.asked if action == "RunInstances"}


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_goes_on_when_its_market_is_started_again(place, cloud, by):
    here = place(jobs=True)
    market = here.market
    ana = market.sign_up("ana")
    spec = infra_spec(market, ana, 1, min_time="12s", max_run_time="120s")
    job = market.post("/v1/jobs", spec, ana).json["id"]
    wait_for("the job to run", lambda: any(lease["role"] == "worker" and lease["ticks"] > 1
                                           for lease in market.get(f"/v1/jobs/{job}", ana).json["leases"]))
    before = here.order(1)["instances"]
    market.stop(by)
    assert cloud.alive() == [before[0]["instance"]]
    assert cloud.instances[before[0]["instance"]].process.poll() is None
    market.start()
    here.sign_in()
    order = here.order(1)
    assert order["state"] == "running" and order["job"] == job, order
    names = ("id", "instance", "machine", "started_ms", "ends_ms")
    assert [[one[name] for name in names] for one in order["instances"]] == \
        [[one[name] for name in names] for one in before], (order, before)
    wait_for("the job to end", lambda: market.get(f"/v1/jobs/{job}", ana).json["state"] in ("succeeded", "failed"))
    done = market.get(f"/v1/jobs/{job}", ana).json
    assert done["state"] == "succeeded", done
    workers = [lease for lease in done["leases"] if lease["role"] == "worker"]
    assert [lease["machine"] for lease in workers] == [before[0]["machine"]], workers
    # And with the job it ends; it was never replaced, nor taken for somebody else's.
    here.wait_until_done(1)
    assert "its job has ended" in here.order(1)["reason"] and len(here.order(1)["instances"]) == 1
    assert json.loads(here("list", "--json").stdout)["strays"] == 0
    assert cloud.alive() == [] and len(tokens_asked(cloud)) == 1
    assert market.stop() == 0
    assert audit(market.folder)[0] == 0


def test_a_launch_without_an_answer_is_taken_up_by_the_next_start(place, cloud):
    here = place(list_s=3600)
    cloud.faults = {"RunInstances": ["after"] * 50}
    order = here.start("m5.large", "--max-cost", "$0.5")
    wait_for("it to be launched", lambda: cloud.alive())
    here.market.kill()
    cloud.faults = {}
    here.market.start()
    here.sign_in()
    here.wait_for_states(order, "ready")
    scripts = {form["UserData"] for action, form in cloud.asked if action == "RunInstances"}
    assert len(cloud.alive()) == 1 and len(tokens_asked(cloud)) == 1 and len(scripts) == 1
    assert here.order(order)["usd_micro_max"] == 500000
    assert json.loads(here("list", "--json").stdout)["strays"] == 0
    # What is stopped stays so.
    here("stop", order)
    here.market.kill()
    here.market.start()
    here.sign_in()
    here.wait_until_done(order)
    assert cloud.alive() == []


def test_orders_that_cannot_be_read_are_an_error_and_end_nothing(place, cloud):
    here = place()
    order = here.start("m5.large")
    here.wait_for_states(order, "ready")
    here.market.kill()
    kept = here.market.folder / "cloud-orders.json"
    good = kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600 and "souk_enrol" not in good and cloud.secret not in good
    for bad, code in ((good[:len(good) // 2], 8), ("", 8), ("{}", 8), (good.replace('"version":1', '"version":9'), 8),
                      (" " * (9 << 20), 6)):
        kept.write_text(bad)
        said = here.souk("serve", "--data", here.market.folder, "--listen", "127.0.0.1:0", "--link-listen",
                         "127.0.0.1:0", "--cloud", here.file, code=code).stderr
        assert "cloud-orders.json" in said and "left alone" in said and len(cloud.alive()) == 1, said
    kept.write_text(good)
    here.market.start()
    here.sign_in()
    assert here.states(order) == ["ready"]
    here("stop", "all")
    here.wait_until_done(order)


def test_a_market_that_lost_its_orders_ends_what_was_left(place, cloud):
    here = place()
    order = here.start("m5.large")
    here.wait_for_states(order, "ready")
    before = cloud.alive()
    assert len(before) == 1
    here.market.kill()
    assert cloud.alive() == before
    (here.market.folder / "cloud-orders.json").unlink()
    here.market.start()
    here.sign_in()
    wait_for("what was left to be ended", lambda: cloud.alive() == [])
    status = json.loads(here("list", "--json").stdout)
    assert status["strays"] == 1 and status["orders"] == []
    assert "0 left running" in here("sweep").stdout
    # A market that is stopped for good ends its own before it goes.
    order = here.start("m5.large")
    here.wait_for_states(order, "ready")
    assert here.market.stop(signal.SIGINT) == 0
    assert cloud.alive() == []


def test_a_market_that_stops_looks_for_what_it_has_no_answer_of(place, cloud):
    here = place(list_s=3600)
    cloud.faults = {"RunInstances": ["after"] * 50}
    here.start("m5.large")
    wait_for("it to be launched", lambda: cloud.alive())
    assert here.market.stop(signal.SIGINT) == 0
    assert cloud.alive() == []


def test_what_is_refused_is_said_and_nothing_is_started(place, cloud):
    here = place()
    assert 'did you mean "m5.large"?' in here("start", "m5.larg", "-y", code=3).stderr
    assert "at most 2 fit" in here("start", "m5.large", "-n", 3, "--budget", "$0.2/h", "-y", code=6).stderr
    assert "price of one" in here("start", "m5.large", "--budget", "$0.01/h", "-y", code=6).stderr
    assert "is not like $2/h" in here("start", "m5.large", "--budget", "2", "-y", code=2).stderr
    assert "4 are the most" in here("start", "t3.medium", "-n", 5, "-y", code=6).stderr
    assert "image_arm64" in here("start", "m7g.large", "-y", code=2).stderr
    assert "no such job" in here("start", "m5.large", "--for", 99, "-y", code=3).stderr
    assert "there is no order 99" in here("stop", 99, code=3).stderr
    assert "neither" in here("stop", "some", code=2).stderr
    plan = here("start", "m5.large", "--budget", "$0.2/h", code=2).stderr
    assert "$0.2000 an hour; in all the price of 1 × m5.large for 24 hours" in plan and "-y" in plan
    # What comes twice by one key is one order.
    cloud.faults = {"RunInstances": [refusal(400, "VcpuLimitExceeded")]}
    twice = [here.market.post("/v1/cloud/orders", {"types": ["m5.large"]}, here.token, key="k1")
             for _ in range(2)]
    assert [answer.status for answer in twice] == [201, 201] and twice[0].json["id"] == twice[1].json["id"], twice
    other = here.market.post("/v1/cloud/orders", {"types": ["m5.xlarge"]}, here.token, key="k1")
    assert other.status == 409, other
    here.wait_until_done(twice[0].json["id"])
    # The account may have no more.
    cloud.faults = {"RunInstances": [refusal(400, "VcpuLimitExceeded")]}
    order = here.start("m5.large", "-n", 2)
    here.wait_until_done(order)
    assert "VcpuLimitExceeded" in here.order(order)["reason"]
    # Nowhere is room.
    cloud.faults = {"RunInstances": [refusal(500, "InsufficientInstanceCapacity") for _ in ZONES]}
    order = here.start("m5.large")
    here.wait_until_done(order)
    assert "InsufficientInstanceCapacity" in here.order(order)["reason"]
    assert [here.order(order)[name] for name in ("usd_micro",)] == [0]
    assert cloud.alive() == [] and cloud.instances == {}
    # Others than the operator may not.
    stranger = here.market.sign_up("eve")
    assert here.market.get("/v1/cloud", stranger).status == 403
    assert here.market.post("/v1/cloud/orders", {"types": ["m5.large"]}, stranger).status == 403


def test_a_group_that_was_opened_ends_the_next_order(place, cloud):
    here = place()
    cloud.boots = False
    first = here.start("m5.large")
    here.wait_for_states(first, "booting")
    group = next(form for action, form in cloud.asked if action == "RunInstances")["SecurityGroupId.1"]
    cloud.call("ec2.authorize_security_group_ingress(GroupId='%s', IpPermissions=[{'IpProtocol': 'tcp', 'FromPort': 22, "
               "'ToPort': 22, 'IpRanges': [{'CidrIp': '0.0.0.0/0'}]}])['Return']" % group)
    second = here.start("m5.large")
    here.wait_until_done(second)
    assert "lets something in" in here.order(second)["reason"] and len(cloud.alive()) == 1
    here("stop", "all")
    here.wait_until_done(first)


def test_keys_that_are_refused_are_said_plainly(place, cloud):
    here = place(secret_access_key="wrong")
    order = here.start("m5.large")
    here.wait_until_done(order)
    assert "AWS_SECRET_ACCESS_KEY" in here.order(order)["reason"]
    assert "AWS_SECRET_ACCESS_KEY" in here("list").stderr
    assert "AWS_SECRET_ACCESS_KEY" in here("sweep", code=7).stderr
    assert cloud.alive() == []
    assert "wrong" not in pathlib.Path(f"{here.market.folder}.log").read_text().replace("wrong_", "")


def test_one_that_never_enrols_is_ended_and_an_idle_one_too(place, cloud):
    here = place(boot_s=10, idle_s=2)
    cloud.boots = False
    order = here.start("m5.large")
    wait_for("it to be replaced", lambda: len(here.order(order)["instances"]) > 1)
    assert "did not enrol in time" in here.order(order)["instances"][0]["reason"]
    cloud.boots = True
    wait_for("one to be idle", lambda: any(i["reason"] == "it was idle" for i in here.order(order)["instances"]))
    here.wait_until_done(order)
    assert cloud.alive() == []


def test_a_wrong_file_is_said_before_anything_starts(cloud, tmp_path):
    souk = Souk(tmp_path)
    file = tmp_path / "cloud.json"
    refused = ["serve", "--data", tmp_path / "market", "--listen", "127.0.0.1:0", "--link-listen", "127.0.0.1:0",
               "--cloud", file]
    assert "cloud.json" in souk(*refused, code=3).stderr
    file.write_text('{"image": "ami-1", "instances_max": 1, "usd_per_hour_max": 1}')
    assert "AWS_ACCESS_KEY_ID" in souk(*refused, code=5).stderr
    souk.variables.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    assert "--public-url" in souk(*refused, code=2).stderr
    file.write_text('{"image": "ami-1", "instances_max": 1, "usd_per_hour_max": -1}')
    assert "usd_per_hour_max" in souk(*refused, code=2).stderr
