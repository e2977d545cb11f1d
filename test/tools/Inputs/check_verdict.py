"""check_verdict.py REPORT: compiles the commands of a verdict on --memory-limit, the fastest three and the slowest."""

import json
import shlex
import subprocess
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
plans = report["fitting_plans"]
times = [plan["predicted_step_ms"] for plan in plans]
assert not report["fits"] and times == sorted(times) and plans
chosen = plans[:3] + plans[-1:]
for plan in chosen:
    subprocess.run([*shlex.split(plan["command"]), "--report=again.json"], check=True, stdout=subprocess.DEVNULL)
    with open("again.json", encoding="utf-8") as file:
        again = json.load(file)
    assert again["arena"] == plan["arena"] <= report["memory_limit"] and again["fits"]
    assert abs(again["predicted_step_ms"] - plan["predicted_step_ms"]) < 1e-9 * plan["predicted_step_ms"] + 1e-12
print(f"arenas and times of {len(chosen)} plans are exact")
