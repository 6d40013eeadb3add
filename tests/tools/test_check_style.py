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
    (".py", "run(place, '--', 'sl~eep 0.$SOUK_RANK; exit 7')"),
    (".py", "run(place, '--', 'while [ ! -e on ]; do sl~eep .1; done')"),
    (".py", "run(place, '--', 'sl~eep $SOUK_RANK')"),
    (".c", "assert_true(now_ms() - begin_ms < STALL_MS + 1000);"),
    (".c", "assert_in_range(now_ms() - begun_ms, 3 * HEARTBEAT_MS, IDLE_MS);"),
    (".c", "while (clock_monotonic_ns(&clock_system) - begin_ns < 200000000)"),
    (".c", "if (watch.late_max_ms > LATE_MAX_MS)"),
    (".c", "assert_true(took_ms < 500);"),
])
def test_a_wait_by_the_clock_is_seen(suffix, line):
    assert re.search(check_style.WAITS[suffix], line.replace("~", ""))


@pytest.mark.parametrize("suffix,line", [
    (".py", "Row(passed=1, sec~onds=2.4)"),
    (".py", "wait_for('the end', lambda: is_over(job)); Row(sec~onds=5)"),
    (".py", "wait_for('the end', lambda: is_over(job), sec~onds=HUNG_S)"),
    (".py", "run(place, '--', 'echo up; exec sl~eep 600')"),
    (".py", "run(place, '--', 'sl~eep inf')"),
    (".c", "print_message(\"it took %d ms\", (int)(now_ms() - begin_ms));"),
    (".c", "assert_true(now_ms() - begin_ms < HUNG_MS);"),
    (".c", "assert_true(took_ms >= 1000);"),
    (".c", "assert_int_equal(report.elapsed_ms, 1000);"),
])
def test_what_goes_by_events_or_is_no_wait_is_left_alone(suffix, line):
    assert not re.search(check_style.WAITS[suffix], line.replace("~", ""))
