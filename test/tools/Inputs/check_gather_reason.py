"""check_gather_reason.py REPORT.json: the reason of --prefetch=auto has the longest gather of the plan, and its computation for each gather."""

import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
gather, sign, compute = re.search(r"gather (\S+) ms (<=|>) compute (\S+) ms;", report["chosen"]).groups()
gathers = [call for call in report["predicted_collectives"] if call["kind"] == "all_gather"]
longest = max(call["ms"] for call in gathers)
each = report["predicted_computing_ms"] / sum(call["count"] for call in gathers)
for got, expected in ((gather, longest), (compute, each)):
    assert abs(float(got) - expected) <= 0.006 * expected, f"got {got} ms, expected {expected} ms: {report['chosen']}"
assert (sign == ">") == (longest > each), report["chosen"]
print("the reason has the numbers of the plan")
