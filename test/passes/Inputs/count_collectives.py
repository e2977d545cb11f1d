"""count_collectives.py FILE: the walks of a module in the local phase, and the collectives of each segment."""

import collections
import re
import sys

counts, segment = {}, None
for line in open(sys.argv[1]):
    if walk := re.search(r"fsdp\.walk @(\S+) \w+ \[(.*?)\] times \[(.*?)\]", line):
        runs = zip(walk[2].replace("@", "").split(", "), walk[3].split(", "))
        print(f"walk {walk[1]}: " + ", ".join(f"{name} x {times}" for name, times in runs))
    if begin := re.search(r"fsdp\.segment @(\S+) ", line):
        segment = counts.setdefault(begin[1], collections.Counter())
    if call := re.search(r"fsdp\.(all_gather|reduce_scatter|all_reduce)\b.* over \[([^\]]*)\]", line):
        segment[f"{call[1]} {call[2].replace(chr(34), '')}"] += 1
for name, calls in counts.items():
    text = ", ".join(f"{call} x {count}" for call, count in sorted(calls.items()))
    print(f"{name}: {text}".rstrip())
