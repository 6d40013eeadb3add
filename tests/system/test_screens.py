"""What people see: tables that fit their terminal, and nothing cut where there is none.

covers cli/command_offer.c, cli/command_offer_list.c, cli/command_job.c, cli/job_view.c
"""
import json
import os
import re
import signal

import pytest

from program import Souk
from serving import HUNG_S, Market
from terminal import Terminal, screen

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    running = Market(tmp_path_factory.mktemp("screens") / "data", "--no-local-lender")
    yield running
    assert running.stop() == 0


@pytest.fixture
def operator(tmp_path, market):
    home = tmp_path / "operator"
    home.mkdir()
    souk = Souk(home)
    souk.variables |= {"SOUK_SERVER": market.url, "SOUK_TOKEN": market.operator_token()}
    return souk


def widest(lines):
    return max(map(len, lines))


@pytest.mark.parametrize("columns", [80, 120])
def test_settings_fit_and_are_whole_elsewhere(operator, columns):
    lines, _ = screen(operator, columns, "settings")
    assert widest(lines) <= columns
    whole = operator("settings").stdout
    assert "free for each member of a karma market" in whole
    words = " ".join(" ".join(lines).split())
    assert "parts going back" in words and "180d" in words
    assert screen(operator, columns, "settings", "--wide")[0] == whole.splitlines()


def test_tokens_leave_out_columns_and_say_so(souk, market):
    souk("account", "open", "--server", market.url, "--name", "token-holder")
    souk("token", "make", "for-the-laptop-in-the-kitchen", "--scopes", "read,borrow",
         "--expires-in", "90d")
    lines, notes = screen(souk, 80, "token", "list")
    assert widest(lines) <= 80 and "never" in lines[1] and "…" in lines[2]
    assert notes == "Not shown: MADE, LAST USED; --wide shows all.\n"
    whole = souk("token", "list")
    assert "for-the-laptop-in-the-kitchen" in whole.stdout and "LAST USED" in whole.stdout
    assert whole.stderr == ""


@pytest.fixture
def member(souk, market, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower())[5:36].strip("-")
    souk("account", "open", "--server", market.url, "--name", name, "--password",
         stdin=PASSWORD + "\n")
    return souk


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_at_the_password_prompt_gives_the_echo_back(souk, market, by):
    terminal = Terminal(80)
    process = souk.start("account", "login", "--server", market.url, "--name", "ada",
                         stdin=terminal.theirs)
    assert process.stderr.read(len("Password: ")) == "Password: "
    assert not terminal.has_echo()
    process.send_signal(by)
    assert process.wait(HUNG_S) == -by
    assert terminal.has_echo()
    process.communicate()
    terminal.close()


def test_a_stopped_password_prompt_asks_again(member, market):
    terminal = Terminal(80)
    name = json.loads(member("account", "--json").stdout)["name"]
    # A group of its own below ours: one without a parent in its session would not be stopped.
    process = member.start("account", "login", "--server", market.url, "--name", name,
                           stdin=terminal.theirs, process_group=0)
    assert process.stderr.read(len("Password: ")) == "Password: "
    process.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    assert terminal.has_echo()
    process.send_signal(signal.SIGCONT)
    assert process.stderr.read(len("\nPassword: ")) == "\nPassword: "
    os.write(terminal.ours, f"{PASSWORD}\n".encode())
    _, notes = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0 and "Signed in" in notes
    terminal.close()


def test_spans_of_nothing_are_refused(member):
    refused = member("token", "make", "ci", "--scopes", "read", "--expires-in", "0s", code=2)
    assert "--expires-in: must be from 1.0 s" in refused.stderr
    assert "--for: must be from" in member("offer", "pause", "1", "--for", "0s", code=2).stderr


def test_signed_out_says_how_to_sign_in(member):
    member("account", "logout")
    assert "souk account login --name NAME" in member("wallet", code=5).stderr


def test_a_negative_offset_is_a_value(operator):
    operator("settings", "set", "slot-offset", "-5h")
    assert "-5h" in operator("settings").stdout
    operator("settings", "set", "slot-offset", "0s")


def test_refusals_use_the_command_lines_words(operator, member):
    refused = operator("settings", "set", "dormant", "1s", code=2).stderr
    assert refused.startswith("souk: dormant must be from 24h to 36600d\n")
    refused = operator("account", "freeze", "operator", "--reason", "x" * 300, code=2).stderr
    assert refused.startswith("souk: --reason: longer than")


def test_every_command_answers_json_with_one_value(member, operator, market):
    """Those that need a machine or a job are tried where one is."""
    token = json.loads(member("token", "make", "x", "--scopes", "read", "--json").stdout)
    slot = json.loads(member("prices", "--json").stdout)["slot"]
    once = [
        ["account"], ["wallet"], ["wallet", "statement"], ["machines"], ["machines", "add"],
        ["offer", "list"], ["job", "list"], ["job", "schema"], ["prices"], ["market"],
        ["prices", "--explain", slot], ["token", "list"], ["token", "revoke", token["id"]],
        ["session", "list"], ["group", "create", "one-value"], ["group", "show"],
        ["group", "invite"], ["group", "leave", "-y"], ["completion", "bash"], ["man"],
        ["account", "open"], ["lend", "--doctor"],
    ]
    for arguments in once:
        json.loads(member(*arguments, "--json").stdout)
    name = json.loads(member("account", "--json").stdout)["name"]
    for arguments in (["settings"], ["settings", "set", "grant", "10"], ["account", "invite"],
                      ["account", "freeze", name, "--reason", "x"], ["account", "unfreeze", name]):
        json.loads(operator(*arguments, "--json").stdout)
    answer = member("account", "password", "--json", stdin=f"{PASSWORD}\nanother long one\n")
    assert json.loads(answer.stdout)["has_password"]
    assert json.loads(member("account", "logout", "--json").stdout)["name"] == name
    login = member("account", "login", "--server", market.url, "--name", name, "--json",
                   stdin="another long one\n")
    assert json.loads(login.stdout)["name"] == name
    deleted = member("account", "delete", "-y", "--json", stdin="another long one\n")
    assert json.loads(deleted.stdout)["name"] == name


def test_variables_carry_the_commands_name(souk, market):
    souk.variables |= {"SOUK_NAME": "neither", "SOUK_ACCOUNT_OPEN_NAME": "by-variable",
                       "SOUK_SERVER": market.url}
    souk("account", "open")
    assert "Account:   by-variable" in souk("account").stdout
    assert "[SOUK_OFFER_PAUSE_FOR]" in souk("offer", "pause", "--help").stdout
    assert "[SOUK_OFFER_MAKE_FOR]" in souk("offer", "make", "--help").stdout
    assert max(map(len, souk("lend", "--help").stdout.splitlines())) <= 80


JOB = """
name: wants
num_nodes: 2
resources: {cpus: 0.25+}
train: {model: logistic, data: fashion-mnist}
market: {max_run_time: 1h%s}
"""


def submit(souk, folder, *flags, more="", code):
    file = folder / "job.yaml"
    file.write_text(JOB % more)
    return " ".join(souk("job", "submit", file, *flags, code=code).stderr.split())


def test_a_job_nobody_here_can_serve_is_told_at_once(member, tmp_path):
    plan = submit(member, tmp_path, code=2)
    assert "it has to wait: no machine here takes workers" in plan
    assert "Warning too few machines here could ever serve it" in plan
    assert "credits are held for 1h of the least it asks for" in plan
    assert "at most the 10.000000 credits you have: it names no max_total_cost" in plan
    plan = submit(member, tmp_path, more=", max_total_cost: 0.05", code=2)
    assert "at most 0.050000 credits (max_total_cost); you have 10.000000" in plan
    refused = submit(member, tmp_path, "--expect-room", "-y", code=7)
    assert "it could not start now: no machine here takes workers; nothing was sent" in refused
    assert "Warning too few machines here could ever serve it, free or not" in refused
    assert "wait" not in refused
    assert json.loads(member("job", "list", "--json").stdout)["items"] == []


def test_who_submits_the_same_job_twice_is_warned(member, tmp_path):
    file = tmp_path / "job.yaml"
    job = 'name: twice\nresources: {cpus: 1}\nrun: "%s"\nmarket: {max_run_time: 10m}\n'
    file.write_text(job % "true")
    first = member("job", "submit", file, "-d", "-y")
    assert "Warning job" not in " ".join(first.stderr.split())
    again = " ".join(member("job", "submit", file, code=2).stderr.split())
    assert f"Warning job {first.stdout.strip()}, submitted" in again
    assert "ago, is the same: this would be one more" in again
    member("job", "cancel", first.stdout.strip(), "-y")
    assert "is the same" not in member("job", "submit", file, code=2).stderr
    member("job", "submit", file, "-d", "-y")
    file.write_text(job % "false")
    other = " ".join(member("job", "submit", file, code=2).stderr.split())
    assert "is the same" not in other


def test_a_quote_says_what_is_lacking(market):
    token = market.sign_up("quoting")
    spec = {"name": "wants", "resources": {"cpus": "64"},
            "train": {"model": "logistic", "data": "fashion-mnist"}}
    quote = market.post("/v1/quotes", spec, token).json
    assert quote["is_lacking"] and not quote["can_start"]
    assert quote["reason"] == "no machine here takes workers" and quote["nearest"] == ""
    assert quote["expected_start_ms"] == 0 and quote["wish_microcredits"] > 0


def test_all_mistakes_of_a_job_file_are_shown(souk, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("nme: x\nnum_nodes: 0\ntrain: {model: lenet6, data: mnist}\n")
    shown = souk("job", "validate", file, code=2).stderr.splitlines()
    assert [line.split(": ")[0] for line in shown[:4]] == [
        f"{file}:1:1", f"{file}:2:12", f"{file}:3:16", f"{file}:1:1"]
    assert shown[4] == f'souk: 4 mistakes in "{file}"'


def test_an_owner_takes_members_out_and_a_left_name_is_free(market, tmp_path):
    def member(name):
        home = tmp_path / name
        home.mkdir()
        souk = Souk(home)
        souk("account", "open", "--server", market.url, "--name", name)
        return souk

    owner, guest = member("group-owner"), member("group-guest")
    owner("group", "create", "atelier")
    code = owner("group", "invite").stdout.strip()
    guest("group", "join", code)
    assert "only the group's owner" in guest("group", "remove", "group-owner", code=5).stderr
    left = json.loads(owner("group", "remove", "group-guest", "--json").stdout)
    assert [one["name"] for one in left["members"]] == ["group-owner"]
    assert "is not in the group" in owner("group", "remove", "group-guest", code=3).stderr
    guest("group", "show", code=3)
    assert "is taken" in guest("group", "create", "atelier", code=4).stderr
    assert "nobody is left in it" in owner("group", "leave", "-y").stderr
    guest("group", "create", "atelier")


def test_a_token_says_what_it_is_for(member):
    assert "NAME: say what the token is for" in member("token", "make", " ", "--scopes", "read",
                                                       code=2).stderr
