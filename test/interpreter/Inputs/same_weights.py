#!/usr/bin/env python3
"""same_weights.py GOT EXPECTED TOLERANCE: every tensor of EXPECTED stands in GOT, each element
within TOLERANCE; GOT may hold more tensors and other float types."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
import weights

got, expected = weights.read(sys.argv[1]), weights.read(sys.argv[2])
for name, (_, shape, values) in expected.items():
    if name not in got or got[name][1] != shape:
        sys.exit(f"'{name}': got {got.get(name, ('', 'nothing'))[1]}, expected {shape}")
    for i, (a, b) in enumerate(zip(got[name][2], values)):
        if not abs(a - b) <= float(sys.argv[3]):
            sys.exit(f"'{name}'[{i}]: got {a!r}, expected {b!r}")
