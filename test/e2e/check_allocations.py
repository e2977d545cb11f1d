#!/usr/bin/env python3
"""check_allocations.py SCRATCH COUNTER: after its first step a generated program takes no memory itself.

COUNTER is preloaded; it counts malloc and mmap between two lines of the log, the program's own calls and those
of libraries apart (CountAllocations.cpp). oneDNN takes a few hundred bytes in each product and gives them back; without AVX-512 also what
it packs blocks of the operands into (docs/memory.md).
"""

import os
import pathlib
import shutil
import sys

import training

STEPS = 12
FLAGS = pathlib.Path("/proc/cpuinfo").read_text()
LIBRARY_BYTES = 1024 if " avx512f" in FLAGS and "ONEDNN_MAX_CPU_ISA" not in os.environ else 4 << 20


def main(scratch, counter):
    folder, goldens = pathlib.Path(scratch), training.GOLDEN / "mlp"
    os.environ.update(training.unoptimized())
    program = training.compile_model("mlp", folder, "--in=12", "--hidden=17", "--classes=10", "--batch=10",
                                     "--clip=0.5", ranks=2)
    counts = folder / "allocations"
    os.environ["FSDP_TEST_ALLOCATIONS"] = str(counts)
    os.environ["LD_PRELOAD"] = counter
    # Samples of two sources, shuffled: the files have the same.
    other = folder / "other.safetensors"
    shutil.copy(goldens / "data.safetensors", other)
    training.train(program, "run", STEPS, goldens / "init.safetensors", f"{goldens / 'data.safetensors'}:0.7",
                   "--data", f"{other}:0.3", "--shuffle", "--log-data")
    del os.environ["LD_PRELOAD"]
    of_steps = [[int(word) for word in line.split()] for line in counts.read_text().splitlines()]
    print(f"before each line of the log: our allocations, those of libraries, bytes of their largest: {of_steps}")
    if len(of_steps) != STEPS:
        sys.exit(f"got {len(of_steps)} counts, expected {STEPS}")
    if of_steps[0][0] == 0:
        sys.exit("got no allocation before the first step is over: nothing was counted")
    if any(ours for ours, _, _ in of_steps[1:]):
        sys.exit("expected none of our own after the first step")
    if max(largest for _, _, largest in of_steps[1:]) > LIBRARY_BYTES:
        sys.exit(f"a library took more than {LIBRARY_BYTES} bytes at once in a step")
    # Its calls are equal in every step: nothing accumulates.
    if len({theirs for _, theirs, _ in of_steps[2:]}) != 1:
        sys.exit("the number of allocations of libraries differs from step to step")


if __name__ == "__main__":
    main(*sys.argv[1:])
