"""check_pipeline_choice.py REPORT SCHEDULE... -- COMMAND...: the plan of REPORT is the fastest of COMMAND with each schedule."""

import json
import pathlib
import subprocess
import sys
import tempfile

split = sys.argv.index("--")
schedules, command = sys.argv[2:split], sys.argv[split + 1:]
times = {}
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "report.json")
    for schedule in schedules:
        subprocess.run([*command, f"--pipeline-schedule={schedule}", f"--report={path}"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        times[schedule] = json.loads(path.read_text(encoding="utf-8"))["predicted_step_ms"]
report = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
best = min(times, key=times.get)
if abs(report["predicted_step_ms"] - times[best]) > 1e-9 or f"chose pipeline-schedule {best}:" not in "chose " + report["chosen"]:
    sys.exit(f"chose {report['chosen']}, {report['predicted_step_ms']} ms; expected {best} of {times}")
assert len(set(times.values())) > 1, times
print(f"the fastest of {len(times)}")
