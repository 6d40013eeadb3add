"""The account commands, against a real market.

covers cli/command_token.c, cli/command_group.c, cli/command_operator.c, cli/secret.c
"""
import json
import os
import pty
import re

import pytest

from program import Souk
from serving import HUNG_S, Market

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    running = Market(tmp_path_factory.mktemp("cli") / "data", "--no-local-lender")
    yield running
    assert running.stop() == 0


@pytest.fixture
def name(request):
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower())[5:36].strip("-")


@pytest.fixture
def other(tmp_path):
    home = tmp_path / "other"
    home.mkdir()
    return Souk(home)


@pytest.fixture
def member(souk, market, name):
    souk("account", "open", "--name", name, "--server", market.url, "--password",
         stdin=PASSWORD + "\n")
    return souk


@pytest.fixture
def operator(tmp_path, market):
    home = tmp_path / "operator"
    home.mkdir()
    souk = Souk(home)
    souk.variables |= {"SOUK_SERVER": market.url, "SOUK_TOKEN": market.operator_token()}
    return souk


def test_signing_in_elsewhere_and_out_again(member, other, market, name):
    refused = other("account", "login", "--server", market.url, "--name", name,
                    stdin="not the password\n", code=5)
    assert refused.stderr == "souk: the name or the password is wrong\n"
    assert "no password was given" in other("account", "login", "--server", market.url, "--name",
                                            name, code=2).stderr
    signed_in = other("account", "login", "--server", market.url, "--name", name,
                      stdin=PASSWORD + "\n")
    assert f'Signed in as "{name}"' in signed_in.stderr
    secrets = other.home / ".config/souk/secrets"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert f"Account:   {name}" in other("account").stdout
    listed = json.loads(member("session", "list", "--json").stdout)["items"]
    assert len(listed) == 1
    assert "Signed out" in other("account", "logout").stderr
    assert "token" not in secrets.read_text()
    other("account", "--server", market.url, code=5)
    assert json.loads(member("session", "list", "--json").stdout)["items"] == []


def test_a_session_elsewhere_can_be_ended(member, other, market, name):
    other("account", "login", "--server", market.url, "--name", name, stdin=PASSWORD + "\n")
    session = json.loads(member("session", "list", "--json").stdout)["items"][0]
    assert str(session["id"]) in member("session", "list").stdout
    member("session", "end", session["id"])
    other("account", code=5)


def test_the_only_token_is_not_thrown_away(souk, market, name):
    souk("account", "open", "--name", name, "--server", market.url)
    assert "Password:  none" in souk("account").stdout
    assert "no way back" in souk("account", "logout", code=4).stderr
    assert "tried first" in souk("account", "password", stdin="password123\n", code=2).stderr
    souk("account", "password", stdin=PASSWORD + "\n")
    assert "Password:" not in souk("account").stdout
    souk("account", "password", stdin="wrong old one\nanother good one\n", code=5)
    souk("account", "password", stdin=f"{PASSWORD}\nanother good one\n")
    souk("account", "logout")
    souk("account", "login", "--name", name, stdin="another good one\n")


def test_a_login_keeps_the_token_there_was(souk, market, name):
    souk("account", "open", "--name", name, "--server", market.url)
    folder = souk.home / ".config" / "souk"
    token = re.search(r"souk_[A-Za-z0-9_-]+", (folder / "secrets").read_text())[0]
    souk("account", "password", stdin=PASSWORD + "\n")
    said = souk("account", "login", "--name", name, stdin=PASSWORD + "\n").stderr
    before = folder / "secrets.before"
    assert str(before) in said and token not in said
    assert token in before.read_text() and before.stat().st_mode & 0o777 == 0o600
    assert token not in (folder / "secrets").read_text()
    souk.variables |= {"SOUK_TOKEN": token}
    assert name in souk("account").stdout


def test_a_password_typed_at_a_terminal_is_not_shown(souk, market, name):
    controller, terminal = pty.openpty()
    process = souk.start("account", "open", "--name", name, "--server", market.url, "--password",
                         stdin=terminal)
    shown = ""
    for question in ("New password: ", "The same again: "):
        while not shown.endswith(question):
            shown += process.stderr.read(1)
        os.write(controller, f"{PASSWORD}\n".encode())
    _, notes = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, notes
    assert PASSWORD not in shown + notes
    os.set_blocking(controller, False)
    with pytest.raises(BlockingIOError):  # a terminal would have shown nothing of the typing
        os.read(controller, 4096)
    os.close(controller)
    os.close(terminal)


def test_tokens_are_made_listed_and_revoked(member, other, market):
    made = json.loads(member("token", "make", "ci", "--scopes", "read,borrow", "--expires-in", "1h",
                             "--json").stdout)
    other.variables |= {"SOUK_SERVER": market.url, "SOUK_TOKEN": made["token"]}
    assert "Available:" in other("account").stdout
    other("token", "list", code=5)
    table = member("token", "list").stdout
    assert re.search(rf"{made['id']}\s+ci\s+read,borrow\s+20\S+ \S+\s+20\S+ \S+\s+20\S+", table), table
    assert "this" in table
    member("token", "revoke", made["id"])
    other("account", code=5)
    assert member("token", "make", "x", "--scopes", "reed", code=2).stderr
    assert member("token", "make", "x", code=2).stderr


def test_a_group_is_made_and_joined(member, other, market, name):
    other("account", "open", "--name", name + "-2", "--server", market.url)
    member("group", "show", code=3)
    assert f"Group: {name}" in member("group", "create", name).stdout
    code = member("group", "invite").stdout.strip()
    joined = other("group", "join", code).stdout
    assert re.search(rf"{name}\s+owner", joined) and f"{name}-2" in joined
    other("group", "join", code, code=5)
    other("group", "leave")
    assert f"{name}-2" not in member("group", "show").stdout
    # An owner is told to whom the group goes, and asked.
    other("group", "join", member("group", "invite").stdout.strip())
    asked = member("group", "leave", code=2)
    assert f'"{name}-2", the member with the oldest account, owns it then' in asked.stderr
    assert re.search(rf"{name}\s+owner", member("group", "show").stdout)
    member("group", "leave", "-y")
    assert re.search(rf"{name}-2\s+owner", other("group", "show").stdout)


def test_refusals_say_what_to_do(member):
    assert 'did you mean "wallet statement"?' in member("wallet", "statment", code=2).stderr
    fine = member("wallet", "transfer", "operator", "1.0000001", "-y", code=2).stderr
    assert "at most six decimals" in fine
    large = member("wallet", "transfer", "operator", "99999999999999", "-y", code=2).stderr
    assert "too large" in large
    assert "days" in member("sim", "market", "--days", "0", code=2).stderr


def test_the_operator_freezes_and_unfreezes(member, operator, name):
    member("account", "freeze", name, "--reason", "mine", code=5)
    frozen = operator("account", "freeze", name, "--reason", "a test")
    assert f'"{name}" is frozen; it has 10.000000 credits' in frozen.stderr
    assert "Frozen:    a test" in member("account").stdout
    assert "Frozen: a test." in member("wallet").stderr
    assert "your account is frozen: a test" in member("wallet", "transfer", "operator", "1", "-y", code=5).stderr
    assert "a test" in member("token", "make", "x", "--scopes", "read", code=5).stderr
    assert f'"{name}" is not frozen; it has 10.000000 credits' in operator("account", "unfreeze", name).stderr
    operator("account", "unfreeze", name, code=4)
    operator("account", "freeze", "nobody-at-all", "--reason", "x", code=3)


def test_the_operator_gives_a_grant_once(member, operator, name):
    member("account", "grant", name, code=5)
    assert "has had its grant: one is all it gets" in operator("account", "grant", name, code=4).stderr
    operator("account", "grant", "nobody-at-all", code=3)


def test_the_operator_changes_settings_and_invites(member, operator, other, market, name):
    member("settings", code=5)
    assert re.search(r"^grant +10\.0+ credits", operator("settings").stdout, re.M)
    assert re.search(r"^grant-daily +0\.0+ credits", operator("settings", "set", "grant-daily", "0").stdout,
                     re.M)
    try:
        invite = operator("account", "invite").stdout.strip()
        opened = other("account", "open", "--name", name + "-2", "--server", market.url, "--invite",
                       invite)
        assert "Credits: 10.000000\n" in opened.stdout
    finally:
        operator("settings", "set", "grant-daily", "1000")
    assert "souk settings" in operator("settings", "set", "grunt", "1", code=2).stderr
    assert operator("settings", "set", "dormant", "soon", code=2).stderr
    assert "fee-basis-points must be" in operator("settings", "set", "fee-basis-points", "501", code=2).stderr


def test_an_account_is_deleted(member, market, name):
    assert "add -y" in member("account", "delete", code=2).stderr
    member("account", "delete", "-y", stdin="not the password\n", code=5)
    deleted = member("account", "delete", "-y", stdin=PASSWORD + "\n")
    assert "10.000000 go back" in deleted.stderr and f'Deleted "{name}"' in deleted.stderr
    assert "token" not in (member.home / ".config/souk/secrets").read_text()
    taken = member("account", "open", "--name", name, "--server", market.url, code=4)
    assert "taken" in taken.stderr
