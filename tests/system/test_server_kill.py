"""SIGKILL at any moment, under load, loses no acknowledged change.

Each round hammers the market from several threads, kills it at a moment drawn from the seed, starts
it again, and asks for everything it had acknowledged in this and all earlier rounds.
SOUK_KILL_ROUNDS and SOUK_KILL_SEED change how many rounds and which moments.
"""
import os
import random
import threading
import time

from serving import HUNG_S, Market, audit

ROUNDS = int(os.environ.get("SOUK_KILL_ROUNDS", "10"))
SEED = int(os.environ.get("SOUK_KILL_SEED", "1"))
THREADS = 6


def key_of(name):
    return f"{name:-<32}"  # as long as a key that opens an account must be


class Load(threading.Thread):
    """Opens accounts and tokens until the market goes away; keeps what was acknowledged."""

    def __init__(self, market, round_, number):
        super().__init__()
        self.market, self.prefix = market, f"r{round_}-t{number}"
        self.accounts = {}  # token -> name
        self.tokens = []
        self.revoked = []
        self.maybe = None  # asked for and not answered
        self.problem = None  # what the market did wrong

    def run(self):
        try:
            self.hammer()
        except BaseException as problem:  # a thread's own are only printed: finish raises it
            self.problem = problem

    def finish(self):
        self.join(HUNG_S)
        assert not self.is_alive(), f"{self.prefix} still waits for an answer"
        if self.problem:
            raise self.problem

    def hammer(self):
        count = 0
        while True:
            count += 1
            name = f"{self.prefix}-{count}"
            try:
                self.maybe = name
                answer = self.market.post("/v1/accounts", {"name": name}, key=key_of(name))
                assert answer.status == 201, answer
                token = answer.json["token"]
                self.accounts[token] = name
                self.maybe = None
                made = self.market.post("/v1/tokens", {"name": "x", "scopes": ["read"]}, token)
                assert made.status == 201, made
                if count % 3:
                    self.tokens.append(made.json["token"])
                    continue
                gone = self.market.call("DELETE", f"/v1/tokens/{made.json['id']}", None, token)
                assert gone.status == 204, gone
                self.revoked.append(made.json["token"])
            except (OSError, ValueError, EOFError):
                return
            except Exception as problem:  # http.client has a family of its own for lost answers
                if type(problem).__module__ != "http.client":
                    raise
                return


def check(market, loads):
    for load in loads:
        for token, name in load.accounts.items():
            account = market.get("/v1/account", token)
            assert account.status == 200 and account.json["name"] == name, (name, account)
            assert account.json["available_microcredits"] == 10_000_000
        for token in load.tokens:
            assert market.get("/v1/account", token).status == 200
        for token in load.revoked:
            assert market.get("/v1/account", token).status == 401
        if load.maybe:
            # Done or not, but never half: asked again it is done once, and the name is its own.
            again = market.post("/v1/accounts", {"name": load.maybe}, key=key_of(load.maybe))
            assert again.status == 201, again
            assert market.get("/v1/account", again.json["token"]).json["name"] == load.maybe
            load.accounts[again.json["token"]] = load.maybe
            load.maybe = None


def test_no_acknowledged_change_is_lost(tmp_path):
    chance = random.Random(SEED)
    market = Market(tmp_path / "market", "--no-local-lender", "--snapshot-events", "200",
                    "--reads-per-minute", "0", "--writes-per-minute", "0")
    settings = market.call("PUT", "/v1/settings", {"grant_daily_microcredits": 10 ** 12},
                           market.operator_token())
    assert settings.status == 200, settings
    done = []
    for round_ in range(ROUNDS):
        loads = [Load(market, round_, number) for number in range(THREADS)]
        for load in loads:
            load.start()
        time.sleep(chance.uniform(0.02, 0.8))  # clock: kills come at any moment
        market.kill()
        for load in loads:
            load.finish()
        market.start()
        check(market, loads)
        done += chance.sample(loads, 2)  # some of each round are asked for again in later ones
        check(market, done)
    assert sum(len(load.accounts) for load in done) > ROUNDS, f"seed {SEED}: too little load"
    assert market.stop() == 0
    status, text = audit(market.folder)
    assert status == 0, f"seed {SEED}: {text}"
