"""check_plan_search.py SCRIPT: `plan` finds the best of all plans, and tells the costs of each row exactly.

SCRIPT runs the compiler of a model with the arguments that it is given, in front of others. Every plan is compiled by a
command of its own, with the options that its row prints.
"""

import itertools
import json
import os
import shlex
import subprocess
import sys

DEVICES, BATCH = 4, 8
STAGED = [("pipeline=2,fsdp=2", ["zero1", "zero2", "fsdp"]), ("pipeline=2,data=2", ["ddp"])]
SCHEDULES = ["1f1b", "zb"]  # three units are too few for two stages on each rank
MESHES = [("data=4", ["ddp"]), ("fsdp=4", ["zero1", "zero2", "fsdp"]), ("data=2,fsdp=2", ["zero1", "zero2", "hsdp"])]
REMATS = ["none", "selective", "full", "every:2", "every:3"] if os.environ.get("FSDP_TEST_ALL") else ["full"]
GIVEN = [f"--remat={REMATS[0]}"] if len(REMATS) == 1 else []  # what is not searched


def report(words):
    done = subprocess.run([*words, "--emit=scheduled", "-o", "plan.mlir", "--report=row.json"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        return None
    with open("row.json", encoding="utf-8") as file:
        return json.load(file)


def search(*options):
    subprocess.run(["bash", sys.argv[1], "plan", f"--devices={DEVICES}", "--json=plans.json", *GIVEN, *options], check=True,
                   stdout=subprocess.DEVNULL)
    with open("plans.json", encoding="utf-8") as file:
        return json.load(file)


def check_rows(found):
    """Each command compiles, and its report has the numbers of its row."""
    steps = []
    for row in found["plans"]:
        assert row["kind"] == "exact", row
        plan = report(shlex.split(row["command"]))
        assert plan, row["command"]
        for name in ("arena", "predicted_step_ms", "predicted_exposed_ms", "predicted_mfu", "predicted_samples_per_s"):
            assert plan[name] == row[name], (name, plan[name], row)
        assert row["arena"] <= found["memory_limit"]
        steps.append(row["predicted_step_ms"])
    assert steps and steps == sorted(steps), steps
    return len(steps)


def enumerate_plans():
    for mesh, strategies in MESHES:
        for strategy, remat, accumulate, prefetch in itertools.product(strategies, REMATS, (1, 2, 4, 8, 16), range(5)):
            if DEVICES * accumulate <= BATCH:
                yield report(["bash", sys.argv[1], f"--mesh={mesh}", f"--strategy={strategy}", f"--remat={remat}",
                              f"--accumulate={accumulate}", f"--prefetch={prefetch}"])


def enumerate_staged():
    for mesh, strategies in STAGED:
        for strategy, accumulate, schedule in itertools.product(strategies, (2, 4), SCHEDULES):
            yield report(["bash", sys.argv[1], f"--mesh={mesh}", f"--strategy={strategy}", "--remat=full", f"--accumulate={accumulate}",
                          "--prefetch=1", f"--pipeline-schedule={schedule}"])


plans = [plan for plan in enumerate_plans() if plan]
arenas = sorted(plan["arena"] for plan in plans)
for title, limit in (("no limit", None), ("a limit", arenas[len(arenas) // 4])):
    found = search(*([f"--memory-limit={limit}"] if limit else []))
    rows = check_rows(found)
    best = min(plan["predicted_step_ms"] for plan in plans if limit is None or plan["arena"] <= limit)
    first = next(row["predicted_step_ms"] for row in found["plans"] if "pipeline" not in row["mesh"])
    assert abs(first - best) <= 1e-9 * best, (title, first, best)
    print(f"{title}: the first of {rows} exact rows is the best of {len(plans)} plans")
found = search("--remat=full", "--prefetch=1")
rows = check_rows(found)
staged = [plan for plan in enumerate_staged() if plan]
plain = [plan for plan in (report(["bash", sys.argv[1], f"--mesh={mesh}", f"--strategy={strategy}", "--remat=full", f"--accumulate={k}",
                                   "--prefetch=1"]) for mesh, strategies in MESHES for strategy in strategies for k in (1, 2)) if plan]
best = min(plan["predicted_step_ms"] for plan in staged + plain)
first = found["plans"][0]["predicted_step_ms"]
assert found["exhaustive"] and abs(first - best) <= 1e-9 * best, (first, best)
assert any("pipeline" in row["mesh"] for row in found["plans"]), found["plans"]
print(f"stages: the first of {rows} exact rows is the best of {len(staged)} plans with stages and {len(plain)} without")
