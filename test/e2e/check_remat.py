#!/usr/bin/env python3
"""check_remat.py SCRATCH [--all]: rematerialization changes no bit.

Small models with dropout, trained for four steps without and with --remat: logs and weights are equal to the last bit. So are they
where `tensor` splits the positions, and inputs of products are gathered again instead of kept; "split" is a model without norms.
The few combinations of the test take every mesh, policy, prefetch depth and precision in turn; --all takes
each with each, in f32 and bf16 (about half an hour of processor time).
"""

import itertools
import json
import os
import pathlib
import random
import sys

import training
from check_refusals import write

STEPS = 4
MODELS = {
    "gpt2": ["--layers=3", "--width=16", "--heads=2", "--context=8", "--vocab=256", "--batch=6", "--dropout=0.1"],
    "llama": ["--layers=3", "--width=16", "--heads=2", "--kv-heads=1", "--ffn=24", "--context=8", "--vocab=256", "--batch=6"],
    "split": [pathlib.Path(__file__).parent.parent / "passes" / "remat-split.mlir"],
}
MESHES = ("fsdp=1", "fsdp=2", "fsdp=3", "fsdp=4", "data=2,fsdp=2", "tensor=2", "fsdp=2,tensor=2")
POLICIES = ("full", "selective", "every:2")
NEVER = "--reshard-after-forward=never"
# Model, mesh, options of both programs, those of the program that computes again.
FEW = (
    ("gpt2", "fsdp=1", [], [["--remat=full"]]),
    ("gpt2", "fsdp=2", [], [["--remat=full", "--prefetch=3"], ["--remat=selective", NEVER]]),
    ("llama", "fsdp=3", [], [["--remat=every:2", "--prefetch=0"]]),
    ("llama", "fsdp=4", [], [["--remat=full", NEVER, "--prefetch=2"]]),
    ("gpt2", "data=2,fsdp=2", ["--precision=bf16"], [["--remat=every:2"]]),
    ("llama", "tensor=2", [], [["--remat=selective"]]),
    ("split", "fsdp=2,tensor=2", [], [["--remat=selective"], ["--remat=every:2"]]),
    ("gpt2", "fsdp=2,tensor=2", [], [["--remat=selective"], ["--remat=full"]]),
)


def every():
    choices = [[f"--remat={policy}", f"--prefetch={depth}", f"--reshard-after-forward={when}"] for policy, depth, when
               in itertools.product(POLICIES, range(4), ("always", "never"))]
    for model, mesh, precision in itertools.product(MODELS, MESHES, ("f32", "bf16")):
        # In bf16 kernels of split positions round in other places.
        if (precision == "f32" if "tensor" in mesh else model != "split"):
            yield model, mesh, [f"--precision={precision}"], choices


def logged(log):
    """What a run logged of its numbers; rates and times are those of the machine."""
    return [{key: value for key, value in json.loads(line).items() if key in ("step", "loss", "grad_norm", "lr")}
            for line in log.read_text().splitlines()]


def train(folder, name, model, mesh, data, options):
    program = folder / name
    training.run([training.tool("fsdpc" if model == "split" else model), *MODELS[model], f"--mesh={mesh}", *options, "-o", program])
    log, weights = folder / f"{name}.jsonl", folder / f"{name}.safetensors"
    training.run([program, "--data", data, "--steps", STEPS, "--seed=3", "--log", log, "--export", weights])
    return logged(log), weights


def main(scratch, extent=""):
    os.environ.update(training.unoptimized())  # it is the compiler that decides what is recomputed and where values are gathered
    folder = pathlib.Path(scratch)
    draw = random.Random(11)
    text = folder / "data.bin"
    text.write_bytes(bytes(draw.randrange(256) for _ in range(4000)))
    numbers = write(folder / "data.safetensors", {"x": ("F32", (24, 6, 4), [draw.gauss(0, 1) for _ in range(24 * 6 * 4)])})
    for number, (model, mesh, common, choices) in enumerate(every() if extent == "--all" else training.chosen(FEW, 1, 4, 6)):
        data = numbers if model == "split" else text
        log, weights = train(folder, f"plain-{number}", model, mesh, data, common)
        if len(log) != STEPS:
            sys.exit(f"remat: {model} on {mesh} logged {len(log)} steps, expected {STEPS}")
        for choice, options in enumerate(choices):
            again, kept = train(folder, f"again-{number}-{choice}", model, mesh, data, [*common, *options])
            if again != log:
                sys.exit(f"remat: {model} on {mesh} with {' '.join([*common, *options])} logged {again}, expected {log}")
            training.same_bytes(kept, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
