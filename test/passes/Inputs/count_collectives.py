"""count_collectives.py FILE: the walks of a module in the local phase, and the collectives of each segment.

With --sizes, collectives of different sizes or types stand apart: all_gather fsdp 4096 f32 x 3, sizes in elements of the larger
side. With --calls, of a module in the scheduled phase, a launch counts once, however many collectives it has."""

import collections
import re
import sys

counts, segment, launches, counted = {}, None, False, False
sizes, calls = "--sizes" in sys.argv, "--calls" in sys.argv
for line in open(sys.argv[1]):
    if walk := re.search(r"fsdp\.walk @(\S+) \w+ \[(.*?)\] times \[(.*?)\]", line):
        runs = zip(walk[2].replace("@", "").split(", "), walk[3].split(", "))
        print(f"walk {walk[1]}: " + ", ".join(f"{name} x {times}" for name, times in runs))
    if begin := re.search(r"fsdp\.segment @(\S+) ", line):
        segment = counts.setdefault(begin[1], collections.Counter())
    if "fsdp.launch" in line:
        launches, counted = True, False
    if call := re.search(r"fsdp\.(all_gather|reduce_scatter|all_reduce|all_to_all|collective_permute)\b.* over \[([^\]]*)\](.*)", line):
        text = f"{call[1]} {call[2].replace(chr(34), '').replace(', ', '+')}"
        if sizes:
            types = re.findall(r"tensor<((?:\d+x)*)(\w+)>", call[3])
            elements = []
            for shape, _ in types:
                product = 1
                for size in shape.split("x")[:-1]:
                    product *= int(size)
                elements.append(product)
            text += f" {max(elements)} {types[0][1]}"
        segment[text] += not (calls and launches and counted)
        counted = True
for name, found in counts.items():
    text = ", ".join(f"{call} x {count}" for call, count in sorted(found.items()))
    print(f"{name}: {text}".rstrip())
