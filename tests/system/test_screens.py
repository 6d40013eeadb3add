"""What people see: tables that fit their terminal, and nothing cut where there is none.

covers cli/command_offer.c, cli/command_job.c, cli/job_view.c
"""
import pytest

from conftest import Souk
from serving import Market
from terminal import screen


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
