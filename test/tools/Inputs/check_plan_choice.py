"""check_plan_choice.py SCRIPT: `auto` is as fast as the fastest of all fixed choices within the limit.

SCRIPT compiles a model with further options. Each choice is compiled by a command of its own.
"""

import itertools
import json
import subprocess
import sys

VALUES = {"remat": ["none", "selective", "full", "every:2", "every:3"], "accumulate": ["1", "2", "4", "8", "16"],
          "prefetch": ["0", "1", "2", "3", "4"]}


def report(*options):
    done = subprocess.run(["bash", sys.argv[1], *options, "--report=oracle.json"], capture_output=True, text=True)
    if done.returncode:
        return None
    with open("oracle.json", encoding="utf-8") as file:
        return json.load(file)


def check(title, names, limit=None):
    fixed = []
    for values in itertools.product(*(VALUES[name] for name in names)):
        plan = report(*(f"--{name}={value}" for name, value in zip(names, values)))
        if plan and (limit is None or plan["arena"] <= limit):
            fixed.append(plan["predicted_step_ms"])
    auto = report(*(f"--{name}=auto" for name in names), *([f"--memory-limit={limit}"] if limit else []))
    assert auto and abs(auto["predicted_step_ms"] - min(fixed)) <= 1e-9 * min(fixed), (title, auto["chosen"], fixed)
    assert limit is None or auto["arena"] <= limit
    total = 1
    for name in names:
        total *= len(VALUES[name])
    print(f"{title}: auto is the best of {total}")


check("prefetch", ["prefetch"])
check("accumulate", ["accumulate"])
none, full = report("--remat=none"), report("--remat=full")
check("remat within a limit", ["remat"], limit=(none["arena"] + full["arena"]) // 2)
check("remat and prefetch", ["remat", "prefetch"])
