#!/usr/bin/env python3
"""check_mlp.py SCRATCH [OPTIMIZER]: thirty steps of the classifier on 1, 2, 3 and 4 ranks.

They agree with PyTorch to 1e-4 in loss and gradient norm, in accuracy exactly; with one another
to 2e-6 in loss and 2e-5 in gradient norm. On 3 ranks a second run is bitwise the first, and so is one that
is resumed from a checkpoint, which has the optimizer's states. OPTIMIZER is a file of test/golden/mlp;
without it, all but adamw and those of check_hyperparameters.py and check_parameter_groups.py.
"""

import json
import os
import pathlib
import sys

import training

GOLDENS = training.GOLDEN / "mlp"


def check(folder, optimizer):
    golden = json.loads((GOLDENS / f"{optimizer}.json").read_text())
    steps = golden["steps"]
    inputs = (GOLDENS / "init.safetensors", GOLDENS / "data.safetensors")
    first = None
    for ranks in training.chosen((1, 2, 3, 4), 0, 2):
        program = training.compile_model(
            "mlp", folder, f"--in={golden['in']}", f"--hidden={golden['hidden']}",
            f"--classes={golden['classes']}", f"--batch={golden['batch']}", *golden["options"],
            ranks=ranks)
        log, weights = training.train(program, f"ranks-{ranks}", steps, *inputs)
        training.compare_log(log, GOLDENS / f"{optimizer}.json", f"--steps={steps}",
                             "--loss=1e-4", "--grad_norm=1e-4", "--accuracy=1e-6")
        training.compare_weights(weights, GOLDENS / f"{optimizer}.expected.safetensors",
                                 "--absolute=1e-4")
        first = first or log
        training.compare_log(log, first, "--loss=2e-6", "--grad_norm=2e-5", "--accuracy=0")
        if ranks == 3:
            saved = folder / "saved"
            again, weights_again = training.train(program, "again", steps, *inputs, "--save", saved, "--save-every=20")
            training.compare_log(again, log, "--loss=0", "--grad_norm=0", "--accuracy=0")
            training.same_bytes(weights_again, weights)
            resume(program, saved, golden["states"], steps, inputs[1], weights)


def resume(program, saved, states, steps, data, expected):
    """Goes back to step 20 and trains on: the same weights, and the checkpoint has `states`."""
    checkpoint = saved / "step-00000020"
    kinds = sorted(path.stem for path in checkpoint.glob("*.safetensors"))
    if kinds != sorted(["model", *states]):
        sys.exit(f"{checkpoint}: got {kinds}, expected the model and {states}")
    weights = program.parent / "resumed.safetensors"
    training.run([program, "--data", data, "--steps", steps, f"--resume={checkpoint}", "--export", weights])
    training.same_bytes(weights, expected)


def main(scratch, *optimizers):
    if not optimizers:
        os.environ.update(training.unoptimized_in_each_check())
    for optimizer in optimizers or sorted(path.stem for path in GOLDENS.glob("*.json") if path.stem != "adamw" and not path.stem.startswith(("settings-", "groups-"))):
        check(pathlib.Path(scratch) / optimizer, optimizer)


if __name__ == "__main__":
    main(*sys.argv[1:])
