"""check_timeline.py TIMELINE [REPORT]: what a predicted timeline holds."""

import json
import sys

events = json.load(open(sys.argv[1], encoding="utf-8"))["traceEvents"]
names = [e for e in events if e["ph"] == "M"]
print("process", next(e["args"]["name"] for e in names if e["name"] == "process_name"))
print("threads", ", ".join(e["args"]["name"] for e in names if e["name"] == "thread_name"))
launches = [e for e in events if e["ph"] == "X" and e["tid"] > 0]
assert launches and all(e["dur"] >= 0 and e["args"]["seconds_alone"] >= 0 for e in launches)
for thread in {e["tid"] for e in launches}:
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in launches if e["tid"] == thread)
    assert all(a[1] <= b[0] + 0.002 for a, b in zip(spans, spans[1:])), spans
print("launches on streams do not overlap")
begins = {e["id"]: e for e in events if e["ph"] == "s"}
ends = {e["id"]: e for e in events if e["ph"] == "f"}
assert begins.keys() == ends.keys() and all(begins[i]["ts"] <= ends[i]["ts"] for i in begins)
print("gathered arrows:", len(begins))
counter = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
assert counter[0] >= counter[-1] == min(counter)
print("bytes alive return to the persistent ones")
if len(sys.argv) > 2:
    report = json.load(open(sys.argv[2], encoding="utf-8"))
    assert max(counter) == report["predicted_alive_bytes"]
    assert max(counter) <= report["lower_bound"], (max(counter), report["lower_bound"])
    step = next(e for e in events if e.get("cat") == "step")
    assert abs(step["dur"] - 1e3 * report["predicted_step_ms"]) < 0.01
    print("peak is within the lower bound")
