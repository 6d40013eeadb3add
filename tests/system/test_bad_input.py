"""Every body the API takes, made wrong in every way its description knows: a problem that names the
field, and nothing has changed.

covers server/handle_credit.c, server/handle_group.c, server/handle_operator.c
"""
import json
import pathlib
import re
import urllib.parse

import pytest

from serving import Market, audit
from training import Lender, job_spec, wait_for

OPENAPI = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/openapi/openapi.json")
                     .read_text())
SCHEMAS = OPENAPI["components"]["schemas"]
DIGEST = "ab" * 32


def resolve(schema):
    while "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    return schema


def sample(schema, name=""):
    """Something the description allows; whether the market does is not the point."""
    schema = resolve(schema)
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {key: sample(schema["properties"][key], key) for key in schema.get("required", [])}
    if kind == "array":
        return [sample(schema["items"], name)] * max(1, schema.get("minItems", 0))
    if kind == "integer":
        return max(schema.get("minimum", 1), 1)
    if kind == "number":
        return 1.0
    if kind == "boolean":
        return False
    pattern = schema.get("pattern", "")
    size = re.search(r"\{(\d+)\}", pattern)
    if size:
        return "ab" * (int(size[1]) // 2)
    return "x" * max(schema.get("minLength", 1), 1)


SAMPLES = {  # where the description alone does not say what passes the reader
    "setPassword": {"password": "a long enough phrase"},
    "missingChunks": {"hashes": [DIGEST]},
    "extendJob": {"by_ms": 1000},
}


def operations():
    for path, methods in OPENAPI["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                yield method.upper(), path, operation["operationId"], resolve(body["schema"])


OPERATIONS = {name: (method, path, schema) for method, path, name, schema in operations()}


def sample_of(name):
    return SAMPLES.get(name) or sample(OPERATIONS[name][2])


class Place:
    """A market with a machine, its offer and a job that waits: something for every path."""

    def __init__(self, folder):
        self.market = Market(folder / "market", "--no-local-lender", "--writes-per-minute", "0",
                             "--sign-ups-per-hour", "0", "--sign-ins-per-10-minutes", "0")
        self.operator = self.market.operator_token()
        self.token = self.market.sign_up("owner")
        self.lender = Lender(self.market, self.token, folder / "lender", "heron")
        machine = wait_for("the machine", self.find_machine)
        offers = self.market.get(f"/v1/machines/{machine}/offers", self.token).json["items"]
        self.spec = job_spec(self.market, self.token, 50)
        job = self.market.post("/v1/jobs", self.spec, self.token)
        assert job.status == 201 and job.json["state"] == "pending", job
        account = self.market.get("/v1/account", self.token).json["id"]
        self.ids = {"machines": machine, "offers": offers[0]["id"], "jobs": job.json["id"],
                    "accounts": account}
        self.lender.stop()  # a daemon's reports would be changes too
        wait_for("the machine's leaving", lambda: not self.find_machine())

    def find_machine(self):
        online = [machine for machine in self.market.get("/v1/machines", self.token).json["items"]
                  if machine["state"] == "online"]
        return online and online[0]["id"]

    def sequence(self):
        text = self.market.get("/metrics").body.decode()
        return int(re.search(r"^souk_event_sequence (\d+)$", text, re.MULTILINE)[1])

    def body(self, name):
        if name in ("createJob", "createQuote"):
            return dict(self.spec)
        return dict(sample_of(name))

    def send(self, name, body):
        method, path, _ = OPERATIONS[name]
        for noun, number in self.ids.items():
            path = path.replace(f"/v1/{noun}/{{id}}", f"/v1/{noun}/{number}")
        is_operators = path.startswith(("/v1/settings", "/v1/cloud")) or "freeze" in path or path.endswith("/grant")
        return self.market.call(method, path, body if isinstance(body, str) else json.dumps(body),
                                self.operator if is_operators else self.token)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("bad-input"))
    yield made
    assert made.market.stop() == 0
    status, text = audit(made.market.folder)
    assert status == 0, text


def assert_refused(place, name, body, words, statuses=(400,)):
    before = place.sequence()
    answer = place.send(name, body)
    what = (name, body if isinstance(body, str) else json.dumps(body)[:300], answer)
    assert answer.status in statuses, what
    assert answer.headers["Content-Type"] == "application/problem+json", what
    assert words in answer.json["detail"], what
    assert place.sequence() == before, what


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_unknown_field_is_named(place, name):
    assert_refused(place, name, {**place.body(name), "no_such_field": 1}, "no_such_field")


@pytest.mark.parametrize("name", [name for name in OPERATIONS
                                  if name not in ("createJob", "createQuote") and sample_of(name)])
def test_a_field_given_twice_is_named(place, name):
    body = json.dumps(place.body(name))
    field = next(iter(json.loads(body)))
    value = json.dumps(json.loads(body)[field])
    assert_refused(place, name, f"{body[:-1]}, \"{field}\": {value}}}", f"{field}: there twice")


NO_OBJECTS = ["[]", "7", '"x"', "null", "{", "", "{\"a\":1}{\"a\":1}", "\x00"]


# A pause without a body lasts until it is resumed.
@pytest.mark.parametrize("name, body", [(name, body) for name in OPERATIONS for body in NO_OBJECTS
                                        if body or name not in ("pauseOffer", "pauseMachine")])
def test_what_is_no_object_is_refused(place, name, body):
    assert_refused(place, name, body, "")


WRONG_NUMBERS = ["9223372036854775808", "-9223372036854775809", "1e400", "NaN", "Infinity", "1.5",
                 '"1"', "null", "[1]", "true"]


def numbers(schema, at=()):
    """The paths of all whole numbers in a body."""
    schema = resolve(schema)
    for key, value in schema.get("properties", {}).items():
        value = resolve(value)
        if value.get("type") == "integer":
            yield (*at, key)
        elif value.get("type") == "object":
            yield from numbers(value, (*at, key))


NUMBERS = [(name, field) for name, (_, _, schema) in OPERATIONS.items()
           if name not in ("createJob", "createQuote") for field in numbers(schema)]


@pytest.mark.parametrize("name, field", NUMBERS)
def test_a_number_that_is_none_is_named(place, name, field):
    for wrong in WRONG_NUMBERS:
        body = place.body(name)
        inner = body
        for key in field[:-1]:
            inner[key] = dict(inner.get(key) or {})
            inner = inner[key]
        inner[field[-1]] = "@"
        text = json.dumps(body).replace('"@"', wrong)
        is_json = wrong not in ("NaN", "Infinity")  # which are no JSON: then the place is told
        assert_refused(place, name, text, field[-1] if is_json else "")


@pytest.mark.parametrize("name, field", NUMBERS)
def test_a_number_out_of_its_range_is_named(place, name, field):
    schema = OPERATIONS[name][2]
    for key in field:
        schema = resolve(schema["properties"][key])
    wrong = [9223372036854775807, -9223372036854775808, -1]
    if name == "changeSettings" and field[-1] == "slot_offset_ms":
        wrong = wrong[:2]  # west of Greenwich
    for number in wrong:
        body = place.body(name)
        inner = body
        for key in field[:-1]:
            inner[key] = dict(inner.get(key) or {})
            inner = inner[key]
        inner[field[-1]] = number
        assert_refused(place, name, body, field[-1])


@pytest.mark.parametrize("market, words", [
    ({"max_run_time": "0s"}, "max_run_time"), ({"max_run_time": "-5m"}, "max_run_time"),
    ({"max_run_time": "99999999999999999999h"}, "max_run_time"),
    ({"start": "by 2020-01-01T00:00:00Z"}, "start"), ({"max_hourly_cost": "NaN"}, "max_hourly_cost"),
    ({"start": "cheapest before 2020-01-01T00:00:00Z"}, "start"),
    ({"max_total_cost": "-1"}, "max_total_cost"), ({"max_total_cost": "1e30"}, "max_total_cost"),
    ({"budget": "1"}, "budget")])
@pytest.mark.parametrize("name", ["createJob", "createQuote"])
def test_jobs_past_their_time_or_price_are_refused(place, name, market, words):
    body = place.body(name)
    assert_refused(place, name, {**body, "market": {**body.get("market", {}), **market}}, words)


@pytest.mark.parametrize("change, words", [
    ({"num_nodes": "4..2"}, "num_nodes"), ({"num_nodes": 0}, "num_nodes"),
    ({"num_nodes": 1 << 40}, "num_nodes"), ({"name": "x" * 500}, "name"),
    ({"resources": {"cpus": "NaN"}}, "cpus"), ({"resources": {"cpus": "-1"}}, "cpus"),
    ({"resources": {"memory": "99999999999999999999"}}, "memory")])
@pytest.mark.parametrize("name", ["createJob", "createQuote"])
def test_jobs_of_impossible_size_are_refused(place, name, change, words):
    assert_refused(place, name, {**place.body(name), **change}, words)


def wrong_values(schema):
    if "enum" in schema:
        return ["", "no such word", schema["enum"][0] + "x"]
    if schema["type"] == "integer":
        return ["", "x", "-1", "1.5", "1 ", str(schema.get("maximum", 2**63 - 1) + 1), "9" * 40]
    if schema["type"] == "boolean":
        return ["", "yes", "2"]
    return [",", "a,,b", "x" * (schema["maxLength"] + 1)] if "maxLength" in schema else []


def machine_questions():
    for parameter in OPENAPI["paths"]["/v1/machines"]["get"]["parameters"]:
        for value in wrong_values(parameter["schema"]):
            yield parameter["name"], value


@pytest.mark.parametrize("name, value", machine_questions())
def test_a_wrong_filter_of_machines_is_named(place, name, value):
    answer = place.market.get(f"/v1/machines?{name}={urllib.parse.quote(value)}", place.token)
    assert answer.status == 400, answer
    assert answer.headers["Content-Type"] == "application/problem+json", answer
    assert answer.json["detail"].startswith(f"{name} must be"), answer


def test_times_in_the_past_are_named(place):
    for name, body, words in (("pauseOffer", {"until_ms": 1000}, "until_ms"),
                              ("createToken", {"name": "t", "scopes": ["read"], "expires_ms": 1000},
                               "expires_ms"),
                              ("createOffer", {"when": "2020-01-01 10:00 - 2020-01-02 10:00"}, "when")):
        assert_refused(place, name, body, words)


REPEATABLE = {"createTransfer": {"to": "owner", "amount_microcredits": 1},
              "createToken": {"name": "again", "scopes": ["read"]},
              "createOffer": {"cores_milli": 10}, "createGroup": {"name": "lab"},
              "extendJob": {"by_ms": 1000}, "pauseOffer": {"for_ms": 60000}}


@pytest.mark.parametrize("name", REPEATABLE)
def test_a_replayed_request_is_done_once_and_another_under_its_key_never(place, name):
    method, path, _ = OPERATIONS[name]
    for noun, number in place.ids.items():
        path = path.replace(f"/v1/{noun}/{{id}}", f"/v1/{noun}/{number}")

    def send(body):
        return place.market.call(method, path, body, place.token, key=f"replay-{name}")

    first = send(REPEATABLE[name])
    before = place.sequence()
    again = send(REPEATABLE[name])
    assert (again.status, again.body) == (first.status, first.body)
    assert place.sequence() == before
    if first.status < 300:
        changed = {**REPEATABLE[name], list(REPEATABLE[name])[-1]: list(REPEATABLE[name].values())[-1]}
        other = send(json.dumps(changed) + " ")
        assert other.status == 409 and "Idempotency-Key" in other.json["detail"], other
        assert place.sequence() == before
