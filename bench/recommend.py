#!/usr/bin/env python3
"""How well clusters are recommended, and what a recommendation costs.

    bench/recommend.py [--json] [--cases 200] [--seed 1] [--paper-cases 11] [--best] [--real N [--at-once K]] [--program build/souk]

Three parts: `souk sim recommend` tries each of many jobs on all of its clusters in virtual time and
compares with what was recommended after a short trial; the same with --paper runs the experiment of
FC²'s paper, its rules beside auto, and with --best beside the best of all clusters, each of which is
trained for that (ten minutes of CPU time); `souk bench recommend` measures the search over 1,354 types of up
to 256 workers, in CPU time. With --real N the first N of twelve cases are trained for real as well, to
check the simulator (recommending/real.py): they want a quiet machine and root. K of them go side by
side where there are three cores for each.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/recommending"))
GOALS = {"median_error": ("<=", 0.15), "p90_error": ("<=", 0.35), "within_1_1": (">=", 0.90),
         "trial_share": ("<=", 0.05), "scala_saved_most": (">=", 0.60), "search_cpu_ms": ("<=", 50),
         "real_median_error": ("<=", 0.15), "auto_no_dearer": (">=", 1), "auto_over_best": ("<=", 1.1)}


def souk(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def is_met(name, value):
    if value is None or name not in GOALS:
        return ""
    sign, goal = GOALS[name]
    return "met" if (value <= goal if sign == "<=" else value >= goal) else "missed"


def print_paper(cases):
    """What each rule's cluster costs, over Scala-Opt's."""
    rules = [rule for rule in ("time-opt", "scala-opt", "auto", "auto-policy", "best") if cases and rule in cases[0]]
    for case in cases:
        over = "  ".join(f"{rule} {case[rule]['cost_micro'] / case['scala-opt']['cost_micro']:.2f} ({case[rule]['cluster']})"
                         for rule in rules)
        print(f"{case['types']}, {case['server']}, batch {case['batch']}: {over}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--paper-cases", type=int, default=11, help="of FC²'s experiment; 0: none")
    parser.add_argument("--best", action="store_true", help="of FC²'s experiment: the best of all clusters, too")
    parser.add_argument("--real", type=int, default=0, help="of twelve cases, trained for real")
    parser.add_argument("--at-once", type=int, default=1, help="of those, side by side")
    parser.add_argument("--program", default=str(ROOT / "build/souk"))
    wanted = parser.parse_args()
    figures = {}
    if wanted.cases:
        figures.update(souk(wanted.program, "sim", "recommend", "--quiet", "--cases", wanted.cases,
                            "--seed", wanted.seed))
    results = {}
    if wanted.paper_cases:
        paper = souk(wanted.program, "sim", "recommend", "--paper", "--quiet", "--cases", wanted.paper_cases,
                     *(["--best"] if wanted.best else []))
        results["paper"] = paper.pop("results")
        figures.update(paper)
    figures.update(souk(wanted.program, "bench", "recommend"))
    if wanted.real:
        import real
        trained = real.measure(wanted.program, wanted.real, wanted.at_once)
        results["real"] = trained.pop("results")
        figures.update(trained)
    if wanted.json:
        print(json.dumps({**figures, **results}))
        return
    for name, value in figures.items():
        sign, goal = GOALS.get(name, ("", ""))
        shown = "-" if value is None else f"{value:.4g}"
        print(f"{name:22} {shown:>12}  {sign} {goal}  {is_met(name, value)}".rstrip())
    print_paper(results.get("paper", []))


if __name__ == "__main__":
    sys.exit(main())
