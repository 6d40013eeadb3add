"""tools/check_style.py: which lines of a test wait by the clock."""
import pathlib
import re
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import check_style  # noqa: E402 -- found through the line above


# A ~ goes, so that no line here is one of those.
@pytest.mark.parametrize("suffix,line", [
    (".py", "wait_for('the end', lambda: is_over(job), sec~onds=5)"),
    (".py", "wait_for_state(market, token, job, ('done',), sec~onds=SOON_S)"),
    (".py", "request.get(url, time~out=5)"),
])
def test_a_wait_by_the_clock_is_seen(suffix, line):
    assert re.search(check_style.WAITS[suffix], line.replace("~", ""))


@pytest.mark.parametrize("suffix,line", [
    (".py", "Row(passed=1, sec~onds=2.4)"),
    (".py", "wait_for('the end', lambda: is_over(job)); Row(sec~onds=5)"),
    (".py", "wait_for('the end', lambda: is_over(job), sec~onds=HUNG_S)"),
])
def test_what_goes_by_events_or_is_no_wait_is_left_alone(suffix, line):
    assert not re.search(check_style.WAITS[suffix], line.replace("~", ""))
