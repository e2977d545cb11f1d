#!/usr/bin/env python3
"""check_mlp.py SCRATCH OPTIMIZER: thirty steps of the classifier on 1, 2, 3 and 4 ranks.

They agree with PyTorch to 1e-4 in loss and gradient norm, in accuracy exactly; with one another
to 2e-6 in loss and 2e-5 in gradient norm; and a second run on 3 ranks is bitwise the first.
OPTIMIZER is a file of test/golden/mlp.
"""

import json
import pathlib
import sys

import training


def main(scratch, optimizer):
    goldens = training.GOLDEN / "mlp"
    golden = json.loads((goldens / f"{optimizer}.json").read_text())
    steps, folder = golden["steps"], pathlib.Path(scratch)
    inputs = (steps, goldens / "init.safetensors", goldens / "data.safetensors")
    first = None
    for ranks in (1, 2, 3, 4):
        program = training.compile_model(
            "mlp", folder, f"--in={golden['in']}", f"--hidden={golden['hidden']}",
            f"--classes={golden['classes']}", f"--batch={golden['batch']}", *golden["options"],
            ranks=ranks)
        log, weights = training.train(program, f"ranks-{ranks}", *inputs)
        training.compare_log(log, goldens / f"{optimizer}.json", f"--steps={steps}",
                             "--loss=1e-4", "--grad_norm=1e-4", "--accuracy=1e-6")
        training.compare_weights(weights, goldens / f"{optimizer}.expected.safetensors",
                                 "--absolute=1e-4")
        first = first or log
        training.compare_log(log, first, "--loss=2e-6", "--grad_norm=2e-5", "--accuracy=0")
        if ranks == 3:
            again, weights_again = training.train(program, "again", *inputs)
            training.compare_log(again, log, "--loss=0", "--grad_norm=0", "--accuracy=0")
            training.same_bytes(weights_again, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
