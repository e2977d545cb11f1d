#!/usr/bin/env python3
"""check_cuda_races.py SCRATCH MODEL ...: the kernels that the compiler writes, where accesses without an order fail.

Two steps of each model on one rank, as check_cuda.py trains it, in f32 and bf16, under the emulator's `races`, with and without
cuBLASLt's epilogues, which take the place of kernels.
"""

import pathlib
import sys

import emulated
import training
from check_cuda import inputs


def main(scratch, *models):
    for model in models:
        options, init, data = inputs(model)
        for precision in ("f32", "bf16"):
            folder = pathlib.Path(scratch) / f"{model}-{precision}"
            program = emulated.compile_model(model, folder, *options, f"--precision={precision}", races=True)
            for epilogues in (True, False):
                emulated.train(program, f"races-{epilogues}", 2, init, data, mode="races,shuffle,seed=3", epilogues=epilogues)
            print(f"{model} {precision}: no races")


if __name__ == "__main__":
    main(*sys.argv[1:])
