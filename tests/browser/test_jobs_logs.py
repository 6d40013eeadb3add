"""A job's log in a real browser: followed, searched over all of it, saved, while the market restarts."""
import signal

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from training import running, wait_for

# Some 1.5 MB: more than a page keeps. What is said later comes when the file for it is there.
LONG = "of many " + "." * 120
SCRIPT = f"""
echo Needle at the beginning
seq -f 'line %.0f {LONG}' 0 4999
echo a Needle in the midst
seq -f 'line %.0f {LONG}' 5000 9999
echo the last needle
echo that is all for now
i=1; while [ $i -lt 9 ]; do [ -e later-$i ] && echo said later $i && i=$((i+1)); sleep 0.1; done  # clock: poll interval
"""


def say(folder, number):
    (work,) = folder.glob("*/leases/*/lease/work")
    (work / f"later-{number}").touch()


def test_a_long_log_is_followed_and_searched(tmp_path):
    places = ["--no-local-lender", "--listen", f"127.0.0.1:{own_port()}", "--link-listen", f"127.0.0.1:{own_port()}"]
    with running(tmp_path, *places) as (market, token, _, _):
        made = market.post("/v1/jobs", {"name": "talks", "resources": {"cpus": "0.1+", "memory": "0.1+"}, "run": SCRIPT,
                                        "market": {"max_run_time": "10m"}}, token)
        assert made.status == 201, made
        job = made.json["id"]
        wait_for("the last needle", lambda: "that is all" in market.get(
            f"/v1/jobs/{job}/logs?last=100", token).json.get("text", ""))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("jobs_logs.mjs", code["url"], tmp_path, job) as walk:
            for number in (1, 2):
                walk.expect("print")
                say(tmp_path, number)
                walk.answer()
            walk.expect("stop")
            market.stop(signal.SIGTERM)
            say(tmp_path, 3)
            walk.answer()
            walk.expect("start")
            market.start()
            walk.answer()
            walk.expect("print")
            say(tmp_path, 4)
            walk.answer()
            seen = walk.end()
        assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    # Of a long log its end is read, and what was before it when one goes there.
    assert not seen["hasFirst"] and 0 < seen["readAtFirst"] <= 64 << 10 and seen["stayed"] == 1000
    assert seen["topBefore"] == seen["topAfter"] and seen["isWindow"]
    assert seen["found"] == ["Needle at the beginning", "a Needle in the midst", "the last needle"]
    assert seen["first"] == "Needle at the beginning"
    at = seen["around"].index("a Needle in the midst")
    assert seen["around"][at - 1:at + 2] == [f"line 4999 {LONG}", "a Needle in the midst", f"line 5000 {LONG}"]
    assert len(seen["around"]) == 201 and seen["isInSight"]
    assert seen["wasClean"] == {"console": [], "failed": []}
    lines = seen["whole"]["text"].splitlines()
    assert seen["whole"]["name"] == f"job-{job}-0.log"
    assert lines == ["Needle at the beginning", *(f"line {i} {LONG}" for i in range(5000)), "a Needle in the midst",
                     *(f"line {i} {LONG}" for i in range(5000, 10000)), "the last needle", "that is all for now",
                     *(f"said later {i}" for i in range(1, 5))]
    assert_clean(seen)
