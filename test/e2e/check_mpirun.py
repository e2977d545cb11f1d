#!/usr/bin/env python3
"""check_mpirun.py SCRATCH: under mpirun, with and without shared memory, the same bits.

Sums are made in rank order by every communicator, so a run of three ranks that were forked, one
started by mpirun, and one that only passes messages log the same losses and leave the same weights.
"""

import json
import os
import pathlib
import sys

import training


def main(scratch):
    goldens, folder = training.GOLDEN / "mlp", pathlib.Path(scratch)
    golden = json.loads((goldens / "clip.json").read_text())
    options = [f"--in={golden['in']}", f"--hidden={golden['hidden']}",
               f"--classes={golden['classes']}", f"--batch={golden['batch']}", *golden["options"]]
    inputs = (10, goldens / "init.safetensors", goldens / "data.safetensors")
    os.environ.update(training.unoptimized())
    program = training.compile_model("mlp", folder, *options, ranks=3)
    messages = training.compile_model("mlp", folder / "mpi", *options, "--communicator=mpi", ranks=3)
    log, weights = training.train(program, "forked", *inputs)
    launcher = ("mpirun", "-n", "3", "--oversubscribe")
    for other, name in ((program, "mpirun"), (messages, "messages")):
        other_log, other_weights = training.train(other, name, *inputs, launcher=launcher)
        training.compare_log(other_log, log, "--loss=0", "--grad_norm=0", "--steps=10")
        training.same_bytes(other_weights, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
