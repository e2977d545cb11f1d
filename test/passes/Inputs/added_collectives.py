"""added_collectives.py: what of the collectives of a training step two blocks add.

Reads from standard input, for each model and policy, a line "MODEL POLICY LAYERS" and the output of count_collectives.py behind it, first of
fewer blocks and then of two more."""

import re
import sys

few, title = {}, None
for line in sys.stdin:
    if found := re.fullmatch(r"(\w+ \S+) \d+", line.strip()):
        title = found[1]
    elif line.startswith("train: "):
        counts = {kind: int(count) for kind, count in re.findall(r"(\w+) tensor x (\d+)", line)}
        if title not in few:
            few[title] = counts
        else:
            print(f"{title}: " + ", ".join(f"{counts[kind] - few[title][kind]} {kind}" for kind in sorted(counts)))
