#!/usr/bin/env python3
"""check_linear.py SCRATCH RANKS CASE...: one SGD step on RANKS shards is JAX's unsharded step.

CASE is BATCH-IN-OUT of test/golden/linear. The loss agrees to 1e-6 relative, the updated
weights to 1e-6 absolute.
"""

import json
import pathlib
import sys

import training


def main(scratch, ranks, *names):
    cases = json.loads((training.GOLDEN / "linear" / "cases.json").read_text())
    for name in names:
        case, prefix = cases[name], str(training.GOLDEN / "linear" / name)
        folder = pathlib.Path(scratch) / name
        program = training.compile_model(
            "linear", folder, f"--in={case['in']}", f"--out={case['out']}",
            f"--batch={case['batch']}", "--optimizer=sgd", f"--lr={case['lr']}", ranks=ranks)
        log, weights = training.train(program, f"ranks-{ranks}", 1, prefix + ".init.safetensors",
                                      prefix + ".data.safetensors")
        expected = folder / "expected.json"
        expected.write_text(json.dumps({"f32": {"loss": [case["loss"]]}}))
        training.compare_log(log, expected, "--loss=1e-6", "--steps=1")
        training.compare_weights(weights, prefix + ".expected.safetensors", "--absolute=1e-6")


if __name__ == "__main__":
    main(*sys.argv[1:])
