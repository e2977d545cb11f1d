#!/usr/bin/env python3
"""trace_of.py SCHEDULED.mlir TRACE.json: a trace in which every launch of the module names a million bytes."""

import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as module:
    names = re.findall(r'fsdp\.launch "([^"]*)" on "(\w+)"', module.read())
events = [{"name": name, "ph": "X", "cat": {"gather": "all_gather", "reduce": "reduce_scatter"}.get(stream, "compute"),
           "args": {"bytes": 1e6, "flops": 0}} for name, stream in names]
with open(sys.argv[2], "w", encoding="utf-8") as trace:
    json.dump({"traceEvents": events}, trace)
