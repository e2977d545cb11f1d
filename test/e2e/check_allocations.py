#!/usr/bin/env python3
"""check_allocations.py SCRATCH COUNTER: after its first step a generated program takes no memory.

COUNTER is preloaded; it counts malloc and mmap between two lines of the log (CountAllocations.cpp).
"""

import os
import pathlib
import sys

import training

STEPS = 12


def main(scratch, counter):
    folder, goldens = pathlib.Path(scratch), training.GOLDEN / "mlp"
    program = training.compile_model("mlp", folder, "--in=12", "--hidden=17", "--classes=10", "--batch=10",
                                     "--clip=0.5", ranks=2)
    counts = folder / "allocations"
    os.environ["FSDP_TEST_ALLOCATIONS"] = str(counts)
    os.environ["LD_PRELOAD"] = counter
    training.train(program, "run", STEPS, goldens / "init.safetensors", goldens / "data.safetensors")
    del os.environ["LD_PRELOAD"]
    of_steps = [int(line) for line in counts.read_text().split()]
    print(f"allocations before each line of the log: {of_steps}")
    if len(of_steps) != STEPS:
        sys.exit(f"got {len(of_steps)} counts, expected {STEPS}")
    if of_steps[0] == 0:
        sys.exit("got no allocation before the first step is over: nothing was counted")
    if any(of_steps[1:]):
        sys.exit("expected none after the first step")


if __name__ == "__main__":
    main(*sys.argv[1:])
