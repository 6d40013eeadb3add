"""A job's log in a real browser: followed, searched over all of it, saved, while the market restarts."""
import signal

from browsing import Walk, assert_clean, free_port, screens
from training import running, wait_for

# More than a page keeps. What is said later comes when the file for it is there.
SCRIPT = """
echo Needle at the beginning
i=0; while [ $i -lt 3000 ]; do echo line $i of many; i=$((i+1)); done
echo a Needle in the midst
while [ $i -lt 6000 ]; do echo line $i of many; i=$((i+1)); done
echo the last needle
echo that is all for now
i=1; while [ $i -lt 9 ]; do [ -e later-$i ] && echo said later $i && i=$((i+1)); sleep 0.1; done
"""


def say(folder, number):
    (work,) = folder.glob("*/leases/*/lease/work")
    (work / f"later-{number}").touch()


def test_a_long_log_is_followed_and_searched(tmp_path):
    places = ["--no-local-lender", "--listen", f"127.0.0.1:{free_port()}", "--link-listen", f"127.0.0.1:{free_port()}"]
    with running(tmp_path, *places) as (market, token, _, _):
        made = market.post("/v1/jobs", {"name": "talks", "resources": {"cpus": "0.1+", "memory": "0.1+"}, "run": SCRIPT,
                                        "market": {"max_run_time": "10m"}}, token)
        assert made.status == 201, made
        job = made.json["id"]
        wait_for("the last needle", lambda: [found for found in market.get(
            f"/v1/jobs/{job}/logs/lines?find=last%20needle", token).json.get("lines", [])] or market.get(
            f"/v1/jobs/{job}/logs/lines?find=last%20needle&offset=100000", token).json.get("lines"))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("jobs_logs.mjs", code["url"], screens(tmp_path), job) as walk:
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
    assert not seen["hasFirst"] and seen["stayed"] == 100
    assert seen["found"] == ["Needle at the beginning", "a Needle in the midst", "the last needle"]
    assert seen["first"] == "Needle at the beginning"
    at = seen["around"].index("a Needle in the midst")
    assert seen["around"][at - 1:at + 2] == ["line 2999 of many", "a Needle in the midst", "line 3000 of many"]
    assert len(seen["around"]) == 201 and seen["isInSight"]
    assert seen["wasClean"] == {"console": [], "failed": []}
    lines = seen["whole"]["text"].splitlines()
    assert seen["whole"]["name"] == f"job-{job}-0.log"
    assert lines == ["Needle at the beginning", *(f"line {i} of many" for i in range(3000)), "a Needle in the midst",
                     *(f"line {i} of many" for i in range(3000, 6000)), "the last needle", "that is all for now",
                     *(f"said later {i}" for i in range(1, 5))]
    assert_clean(seen)
