"""check_stage_choice.py REPORT UNITS -- COMMAND...: no other cut of the UNITS of COMMAND into two stages has a dearest stage that takes less.

A stage takes as long as its computation, its gathers or its reductions of all microbatches, whichever is longest: of the launches of its process in
--timeline, each by itself.
"""

import json
import pathlib
import subprocess
import sys
import tempfile


def dearest(path):
    """The seconds of the longest of these in any process."""
    events = json.loads(path.read_text(encoding="utf-8"))
    events = events["traceEvents"] if isinstance(events, dict) else events
    streams = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    resources = {"compute": 0, "activation": 0, "gather": 1, "reduce": 2}
    sums = {}
    for event in events:
        # Behind the microbatches are norm and updates.
        stream = streams.get((event["pid"], event.get("tid")))
        if event["ph"] == "X" and stream in resources and " microbatch " in event["name"]:
            key = event["pid"], resources[stream]
            sums[key] = sums.get(key, 0) + event["args"]["seconds_alone"]
    return max(sums.values())


split = sys.argv.index("--")
units, command = int(sys.argv[2]), sys.argv[split + 1:]
chosen = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["chosen"].split()[1].rstrip(":")
times = {}
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "step.json")
    for first in range(1, units):
        cut = f"{first},{units - first}"
        subprocess.run([*command, f"--stages={cut}", f"--timeline={path}"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times[cut] = dearest(path)
# Times of units are those of the plan of equal flops; in another plan kernels at the borders are others.
if times[chosen] > 1.02 * min(times.values()):
    sys.exit(f"chose {chosen}, of which the dearest stage takes {times[chosen]} s; the cuts take {times}")
assert times[chosen] < 0.9 * max(times.values()), times
print(f"the dearest stage is the cheapest of {len(times)} cuts")
