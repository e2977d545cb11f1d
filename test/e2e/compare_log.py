#!/usr/bin/env python3
"""compare_log.py LOG EXPECTED [--NAME=RELATIVE ...] [--key=KEY] [--steps=N]

LOG is what a training program wrote with --log: a JSON object a line. EXPECTED is another such
log, or a golden (a JSON object with a list for each name, below --key, `f32` by default).
Each --NAME is compared step by step within the relative tolerance given (0: equal), such as
`--loss=1e-6 --grad_norm=2e-5`; LOG has N steps, or as many as EXPECTED. Steps count from 1 and none is missing. Prints the worst of each.
"""

import json
import sys


def read_log(path, names):
    """name -> list of values, step by step."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for number, line in enumerate(lines, 1):
        if line.get("step") != number:
            sys.exit(f"log: {path}:{number}: got step {line.get('step')}, expected {number}")
        missing = [name for name in names if name not in line]
        if missing:
            sys.exit(f"log: {path}:{number}: has no '{missing[0]}', only {sorted(line)}")
    return {name: [line[name] for line in lines] for name in names}


def read_expected(path, names, key):
    if not path.endswith(".json"):
        return read_log(path, names)
    with open(path, encoding="utf-8") as file:
        golden = json.load(file)
    return {name: golden[key][name] for name in names}


def main(arguments):
    files = [a for a in arguments if not a.startswith("--")]
    options = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--"))
    key = options.pop("key", "f32")
    steps = int(options.pop("steps", 0))
    tolerances = {name: float(value) for name, value in options.items()}
    if len(files) != 2 or not tolerances:
        sys.exit(__doc__)
    got = read_log(files[0], tolerances)
    expected = read_expected(files[1], tolerances, key)
    said = []
    for name, tolerance in tolerances.items():
        wanted = steps or len(expected[name])
        if len(got[name]) != wanted or len(expected[name]) < wanted:
            sys.exit(f"log: '{name}': got {len(got[name])} steps and {len(expected[name])} to compare with, expected {wanted}")
        worst = 0.0
        for step, (a, b) in enumerate(zip(got[name], expected[name]), 1):
            difference = abs(a - b) / abs(b) if b else abs(a - b)
            if not difference <= tolerance:
                sys.exit(f"log: step {step}: got {name} {a!r}, expected {b!r} to {tolerance:g} relative")
            worst = max(worst, difference)
        said.append(f"{name} {worst:.2g}")
    print(f"log: {len(got[name])} steps agree; largest relative difference: {', '.join(said)}")


if __name__ == "__main__":
    main(sys.argv[1:])
