#!/usr/bin/env python3
"""check_sequences.py SCRATCH: every operation on sequences, on all phases and in the program.

The batch of 6 divides over 1, 2 and 3 ranks and not over 4. On each mesh the phases agree in double
as check_phases.py says, and the programs agree with one another to 2e-5 in loss, accuracy and gradient norm.
A token that the table lacks ends the program with its place and value.
"""

import json
import os
import pathlib
import random
import sys

import check_phases
import training
from check_refusals import refused, write

CLASSES, LENGTH, WIDTH, SIZE, GROUPS, SAMPLES, STEPS = 11, 6, 8, 2, 2, 24, 10
SHAPES = {
    "table.weight": (CLASSES, WIDTH), "mix.scale": (WIDTH,), "mix.bias": (WIDTH,),
    "mix.query": (WIDTH, WIDTH), "mix.key": (WIDTH, GROUPS * SIZE), "mix.value": (WIDTH, GROUPS * SIZE),
    "mix.rest": (GROUPS, SIZE), "gates.norm": (WIDTH,), "gates.in": (WIDTH, 2 * WIDTH),
    "gates.share": (WIDTH, 2)}


def dataset(folder, name="data", changes=()):
    """Random tokens; the next one is their successor but for every fifth. Changed where asked for."""
    draw = random.Random(5)
    tokens = [draw.randrange(CLASSES) for _ in range(SAMPLES * LENGTH)]
    following = [(t + 1) % CLASSES if i % 5 else draw.randrange(CLASSES) for i, t in enumerate(tokens)]
    shape = (SAMPLES, LENGTH)
    documents = [int(3 * draw.random() ** 2) for _ in range(SAMPLES * (LENGTH + 1))]
    for place, token in changes:
        tokens[place] = token
    return write(folder / f"{name}.safetensors", {"tokens": ("I32", shape, tokens), "next": ("I32", shape, following),
                                                    "documents": ("I32", (SAMPLES, LENGTH + 1), documents)})


def initial(folder):
    draw = random.Random(6)

    def values(name, shape):
        count = 1
        for size in shape:
            count *= size
        mean = 1.0 if name.endswith(("scale", "norm")) else 0.0
        return [mean + draw.gauss(0, 0.4) for _ in range(count)]

    return write(folder / "init.safetensors",
                 {name: ("F32", shape, values(name, shape)) for name, shape in SHAPES.items()})


def main(scratch):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    data, weights, first = dataset(folder), initial(folder), None
    for ranks in training.chosen((1, 2, 3, 4), 0, 1, 2):
        options = ["--batch=6", "--lr=0.02", "--clip=1", f"--mesh=fsdp={ranks}"]
        here = folder / f"sequences-{ranks}"
        check_phases.check(here, "sequences", data, weights, options)
        log, _ = training.train(here / "train", "log", STEPS, weights, data)
        first = first or log
        training.compare_log(log, first, "--loss=2e-5", "--grad_norm=2e-5", "--accuracy=1e-6",
                             f"--steps={STEPS}")
    unknown = dataset(folder, "unknown", [(13, CLASSES)])
    refused("unknown token", [folder / "sequences-2" / "train", "--data", unknown, "--steps", 1], 1,
            "'table.embedding'", "is 11, expected 0 to 10")
    losses = [json.loads(line)["loss"] for line in first.read_text().splitlines()]
    if not losses[-1] < 0.9 * losses[0]:
        sys.exit(f"sequences: got loss {losses[-1]} after {STEPS} steps, expected less than 0.9 * {losses[0]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
