#!/usr/bin/env python3
"""check_interpreter.py FOLDER: the interpreter against PyTorch in double precision.

For each optimizer thirty steps of the classifier: `fsdp-run` in exact numerics, on one device
(global phase) and on three ranks with streams (scheduled phase), logs what PyTorch logged when it
trained the same weights on the same batches in double, to 1e-8 relative.
"""

import json
import sys

import training

FOLDER = sys.argv[1]
GOLDEN = training.GOLDEN / "mlp"


def logged(module, golden):
    """name -> its value in each step."""
    text = training.run([training.tool("fsdp-run"), module, "--params", GOLDEN / "init.safetensors",
                         "--inputs", GOLDEN / "data.safetensors", f"--steps={golden['steps']}"])
    series = {}
    for line in text.stdout.splitlines():
        _, _, name, value = line.split()
        series.setdefault(name, []).append(float(value))
    return series


for optimizer in ("sgd", "momentum", "adam", "adamw", "clip"):
    golden = json.loads((GOLDEN / f"{optimizer}.json").read_text())
    sizes = [f"--{name}={golden[name]}" for name in ("in", "hidden", "classes", "batch")]
    for phase, mesh in (("global", "fsdp=1"), ("scheduled", "fsdp=3")):
        module = f"{FOLDER}/{optimizer}-{phase}.mlir"
        training.run([training.tool("mlp"), *sizes, *golden["options"], f"--mesh={mesh}",
                      f"--emit={phase}", "-o", module])
        got, worst = logged(module, golden), 0.0
        for name, expected in golden["f64"].items():
            if len(got.get(name, ())) != len(expected):
                sys.exit(f"interpreter: {optimizer}, {phase}: '{name}' has "
                         f"{len(got.get(name, ()))} values, expected {len(expected)}")
            for step, (a, b) in enumerate(zip(got[name], expected), 1):
                difference = abs(a - b) / max(abs(b), 1e-3)
                if not difference <= 1e-8:
                    sys.exit(f"interpreter: {optimizer}, {phase}: '{name}' of step {step}: "
                             f"got {a!r}, expected {b!r}")
                worst = max(worst, difference)
        print(f"interpreter: {optimizer}, {phase}: agrees with PyTorch to {worst:.2g}")
