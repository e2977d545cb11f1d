"""check_plan_choice.py SMALL.sh MLP.sh, or --policies BIN: `auto` is as fast as the fastest of all fixed choices within the limit.

Both scripts compile a model with further options, MLP.sh the faster. Each choice is compiled by a command of its own. With --policies, all
options are chosen for 60 (model, mesh, machine), half of them with a limit, and compared with fixed choices that are
usual; BIN has the models. This takes ten minutes.
"""

import itertools
import json
import os
import subprocess
import sys

VALUES = {"remat": ["none", "selective", "full", "every:2", "every:3"], "accumulate": ["1", "2", "4", "8", "16"],
          "prefetch": ["0", "1", "2", "3", "4"], "buckets": ["unit", "parameter", "units:2"], "defer-updates": ["off", "on"],
          "reshard-after-forward": ["always", "never", "axes:fsdp:(1)2"]}
MODELS = ["mlp --in=512 --hidden=2048 --batch=512", "gpt2 --layers=2 --batch=64",
          "llama --layers=1 --width=1024 --heads=8 --kv-heads=4 --ffn=4096 --context=1024 --batch=64"]
MESHES = ["--mesh=fsdp=8", "--mesh=data=2,fsdp=4 --strategy=hsdp", "--mesh=fsdp=4 --strategy=zero1",
          "--mesh=data=4 --strategy=ddp"]
MACHINES = ["host", "a100-40x8", "h100x8", "b200x8", "slow.json"]
POLICIES = ["", "--remat=full", "--remat=selective", "--accumulate=4", "--prefetch=0", "--prefetch=3",
            "--buckets=parameter", "--buckets=parameter --prefetch=4", "--defer-updates=on", "--remat=full --accumulate=4",
            "--reshard-after-forward=never", "--reshard-after-forward=never --defer-updates=on --prefetch=2"]


def report(*options, command):
    done = subprocess.run([*command, *options, "--report=oracle.json"], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        return None
    with open("oracle.json", encoding="utf-8") as file:
        return json.load(file)


def check(title, script, names, limit=None):
    command, fixed = ("bash", script), []
    for values in itertools.product(*(VALUES[name] for name in names)):
        plan = report(*(f"--{name}={value}" for name, value in zip(names, values)), command=command)
        if plan and (limit is None or plan["arena"] <= limit):
            fixed.append(plan["predicted_step_ms"])
    auto = report(*(f"--{name}=auto" for name in names), *([f"--memory-limit={limit}"] if limit else []), command=command)
    assert auto and abs(auto["predicted_step_ms"] - min(fixed)) <= 1e-9 * min(fixed), (title, auto["chosen"], fixed)
    assert limit is None or auto["arena"] <= limit
    total = 1
    for name in names:
        total *= len(VALUES[name])
    print(f"{title}: auto is the best of {total}")


def check_policies(binaries):
    ratios = []
    for model, mesh, machine in itertools.product(MODELS, MESHES, MACHINES):
        command = [f"{binaries}/{model.split()[0]}", *model.split()[1:], *mesh.split(), f"--machine={machine}"]
        fixed = [report(*policy.split(), command=command) for policy in POLICIES]
        fixed = [plan for plan in fixed if plan]
        limit = sorted(plan["arena"] for plan in fixed)[len(fixed) // 3] if len(ratios) % 2 else 1 << 50
        auto = report(*(f"--{name}=auto" for name in VALUES), f"--memory-limit={limit}", command=command)
        assert auto and auto["arena"] <= limit, (command, limit, auto)
        best = min(plan["predicted_step_ms"] for plan in fixed if plan["arena"] <= limit)
        ratios.append(auto["predicted_step_ms"] / best)
        assert ratios[-1] <= 1 + 1e-9, (command, limit, best, auto["chosen"])
    ratios.sort()
    print(f"auto is never slower than {len(POLICIES)} fixed choices for {len(ratios)} (model, mesh, machine); its step takes "
          f"{ratios[0]:.3f} to {ratios[-1]:.3f} of that of the fastest of them, median {ratios[len(ratios) // 2]:.3f}")


if sys.argv[1] == "--policies":
    check_policies(sys.argv[2])
    sys.exit()
small, mlp = sys.argv[1:]
check("prefetch", small, ["prefetch"])
check("accumulate", mlp, ["accumulate"])
none, full = (report(f"--remat={remat}", command=("bash", small)) for remat in ("none", "full"))
check("remat within a limit", small, ["remat"], limit=(none["arena"] + full["arena"]) // 2)
if os.environ.get("FSDP_TEST_ALL"):
    check("remat and prefetch", small, ["remat", "prefetch"])
check("buckets, updates and gathered parameters", mlp, ["buckets", "defer-updates", "reshard-after-forward"])
