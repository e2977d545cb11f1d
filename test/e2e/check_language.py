#!/usr/bin/env python3
"""check_language.py SCRATCH MODEL: a language model on 1, 2, 3 and 4 ranks, against Hugging Face's.

Thirty steps of AdamW agree with the golden to 1e-4 in loss and gradient norm, and with one another
to 2e-6 in loss and 2e-5 in gradient norm; a second run on 3 ranks is bitwise the first; what it
exports loads back as it was, on 2 ranks. Every gradient of step 1 agrees with the golden to 1e-5 of
its tensor's largest. MODEL is a folder of test/golden.
"""

import json
import pathlib
import sys

import training
import weights as safetensors


def compare_gradients(init, stepped, golden, rate):
    """One step of plain descent subtracts `rate` times the gradient. A power of two that is large
    makes the difference as exact as the gradient. Parts of a tensor whose gradient is zero (the
    bias of keys shifts all scores of a row alike) are compared with the tensor's largest."""
    before, after, expected = map(safetensors.read, (init, stepped, golden))
    if after.keys() != expected.keys():
        sys.exit(f"gradients: got tensors {sorted(after)}, expected {sorted(expected)}")
    worst = 0.0, ""
    for name, (_, shape, values) in expected.items():
        if after[name][1] != shape:
            sys.exit(f"gradients: '{name}': got shape {after[name][1]}, expected {shape}")
        largest = max(map(abs, values))
        for old, new, value in zip(before[name][2], after[name][2], values):
            difference = abs((old - new) / rate - value) / largest
            if not difference <= 1e-5:
                sys.exit(f"gradients: '{name}': got {(old - new) / rate!r}, expected {value!r}")
            worst = max(worst, (difference, name))
    print(f"gradients: {len(expected)} tensors agree; largest difference {worst[0]:.2g} of the largest "
          f"element, in '{worst[1]}'")


def main(scratch, model):
    folder, goldens = pathlib.Path(scratch), training.GOLDEN / model
    golden = json.loads((goldens / "adamw.json").read_text())
    sizes = [f"--{name}={size}" for name, size in golden["sizes"].items()]
    sizes.append(f"--batch={golden['batch']}")
    init, tokens = goldens / "init.safetensors", goldens / "tokens.bin"
    inputs = (golden["steps"], init, tokens)
    first, programs, exported = None, {}, None
    for ranks in training.chosen((1, 2, 3, 4), 0, 1, 2):
        program = programs[ranks] = training.compile_model(model, folder, *sizes, *golden["options"],
                                                           ranks=ranks)
        log, weights = training.train(program, f"ranks-{ranks}", *inputs)
        training.compare_log(log, goldens / "adamw.json", f"--steps={golden['steps']}",
                             "--loss=1e-4", "--grad_norm=1e-4")
        first = first or log
        training.compare_log(log, first, "--loss=2e-6", "--grad_norm=2e-5")
        if ranks == 3:
            exported = weights
            again, weights_again = training.train(program, "again", *inputs)
            training.compare_log(again, log, "--loss=0", "--grad_norm=0")
            training.same_bytes(weights_again, weights)

    _, back = training.train(programs[2], "back", 1, exported, tokens, "--lr", 0)
    training.same_bytes(back, exported)

    rate = 1024
    for ranks in training.chosen((1, 3), 1):
        program = training.compile_model(model, folder / "gradients", *sizes, "--optimizer=sgd",
                                         f"--lr={rate}", "--weight-decay=0", ranks=ranks)
        _, stepped = training.train(program, f"gradients-{ranks}", 1, init, tokens)
        compare_gradients(init, stepped, goldens / "gradients.safetensors", rate)


if __name__ == "__main__":
    main(*sys.argv[1:])
