"""check_pipeline_report.py REPORT TIMELINE: the roles of a pipeline, and their rows."""

import collections
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
events = json.load(open(sys.argv[2], encoding="utf-8"))["traceEvents"]
roles = report["roles"]
print("stages of", " and ".join(str(len(role["units"])) for role in roles), "units")

# `collectives`: calls that are alike, as often as the role that has most of them.
def key(call):
    return call["kind"], tuple(call["axes"]), call["bytes"], call["received"]

most = collections.Counter()
for role in roles:
    for call in role["collectives"]:
        most[key(call)] = max(most[key(call)], call["count"])
assert most == collections.Counter({key(call): call["count"] for call in report["collectives"]}), most
print("collectives are the most of any role")

dearest = max(roles, key=lambda role: role["flops"])
assert dearest["role"] == report["work_role"]
assert dearest["flops"] == sum(work["flops"] for work in report["work"])
assert len(report["predicted_pipeline_idle"]) == len(roles)
assert all(0 <= idle < 1 for idle in report["predicted_pipeline_idle"])
print("work is that of", report["work_role"])

pids = {e["args"]["name"].split()[1]: e["pid"] for e in events if e["name"] == "process_name"}
assert list(pids) == [role["role"] for role in roles], pids
ends = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X" and event.get("cat") in ("send", "receive"):
        ends[round(event["ts"], 2), round(event["dur"], 2)].append((event["cat"], event["pid"]))
transfers = collections.Counter()
for time, both in ends.items():
    kinds = collections.Counter(kind for kind, _ in both)
    assert kinds["send"] == kinds["receive"] >= 1, (time, both)
for event in events:
    if event["ph"] == "X" and event.get("cat") == "send":
        transfers["microbatch" if " microbatch " in event["name"] else "tied"] += 1
sent = collections.Counter()
for role in roles:
    for call in role["collectives"]:
        sent[call["kind"]] += call["count"]
assert sent["send"] == sent["receive"] == sum(transfers.values()), (sent, transfers)
print(f"a row for each stage, with the same {transfers['microbatch']} transfers of microbatches, and those of a tied weight, "
      "at the same times")
