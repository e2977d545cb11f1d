#!/usr/bin/env python3
"""compare_weights.py GOT EXPECTED [--absolute=T] [--relative=T]

Two safetensors files have the same tensors, each element within
absolute + relative * |expected| (0 by default: equal, NaN never). Prints the worst one.
"""

import argparse
import sys

import weights


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("got")
    parser.add_argument("expected")
    parser.add_argument("--absolute", type=float, default=0.0)
    parser.add_argument("--relative", type=float, default=0.0)
    options = parser.parse_args(arguments)
    got, expected = weights.read(options.got), weights.read(options.expected)
    if set(got) != set(expected):
        sys.exit(f"weights: got tensors {sorted(got)}, expected {sorted(expected)}")
    worst, where = 0.0, "nowhere"
    for name in sorted(expected):
        if got[name][:2] != expected[name][:2]:
            sys.exit(f"weights: '{name}': got {got[name][:2]}, expected {expected[name][:2]}")
        for i, (a, b) in enumerate(zip(got[name][2], expected[name][2])):
            if not abs(a - b) <= options.absolute + options.relative * abs(b):
                sys.exit(f"weights: '{name}'[{i}]: got {a!r}, expected {b!r}")
            if abs(a - b) > worst:
                worst, where = abs(a - b), f"'{name}'[{i}]"
    print(f"weights: {len(expected)} tensors agree; largest difference {worst:.3g} at {where}")


if __name__ == "__main__":
    main(sys.argv[1:])
