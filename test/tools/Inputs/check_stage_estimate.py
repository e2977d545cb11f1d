"""check_stage_estimate.py PLANS.json: plans with stages that lose by their estimates are about as fast and as large when compiled."""

import json
import pathlib
import subprocess
import sys

found = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
command = found["plans"][0]["command"].split()
chosen = ("--mesh=", "--strategy=", "--tied-gradients=", "--remat=", "--accumulate=", "--prefetch=", "--pipeline-schedule=", "--stages=")
command = [word for word in command[:command.index("--report")] if not word.startswith(chosen)]
estimates = [row for row in found["others"] if row["kind"] == "estimate" and "pipeline" in row["mesh"]]
for row in estimates:
    options = {"mesh": row["mesh"], "stages": ",".join(map(str, row["stages"]))}
    options.update((name, row[name.replace("-", "_")]) for name in ("strategy", "remat", "accumulate", "prefetch", "pipeline-schedule"))
    subprocess.run([*command, *(f"--{name}={value}" for name, value in options.items()), "--report=row.json"], check=True,
                   stdout=subprocess.DEVNULL)
    exact = json.loads(pathlib.Path("row.json").read_text(encoding="utf-8"))
    for name in ("predicted_step_ms", "arena"):
        assert 0.75 <= row[name] / exact[name] <= 1.25, (name, row, exact[name])
print(f"{len(estimates)} estimates are within 25 % of the exact plans")
