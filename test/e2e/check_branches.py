#!/usr/bin/env python3
"""check_branches.py SCRATCH: a model that nothing was made for passes the whole line.

Its batch of 10 stands last in some values and is reduced in forward, its parameter is used twice,
its samples have weights. Ten steps on 1, 2, 3, 4 ranks and on a mesh of 2 x 2 agree to 2e-5 in loss,
metrics and gradient norm, and the loss falls.
"""

import json
import os
import pathlib
import random
import sys

import training
import weights as safetensors
from check_refusals import write

BATCH, WIDTH, SAMPLES, STEPS = 10, 6, 40, 10


def dataset(folder):
    """Samples of features that the targets depend on, and weights between 0 and 2."""
    draw = random.Random(7)
    left = [draw.gauss(0, 1) for _ in range(SAMPLES * WIDTH)]
    right = [draw.gauss(0, 1) for _ in range(SAMPLES * WIDTH)]
    target = [a - 0.5 * b for a, b in zip(left, right)]
    importance = [draw.uniform(0, 2) for _ in range(SAMPLES)]
    matrix = (SAMPLES, WIDTH)
    return write(folder / "data.safetensors", {
        "left": ("F32", matrix, left), "right": ("F32", matrix, right),
        "target": ("F32", matrix, target), "importance": ("F32", (SAMPLES,), importance)})


def initial(folder):
    """Weights of the shapes that stand in files."""
    draw = random.Random(11)
    return write(folder / "init.safetensors", {
        "shared.weight": ("F32", (WIDTH, WIDTH), [draw.gauss(0, 0.4) for _ in range(WIDTH * WIDTH)]),
        "mix.scale": ("F32", (WIDTH,), [1 + draw.gauss(0, 0.1) for _ in range(WIDTH)]),
        "mix.output.shift": ("F32", (WIDTH,), [draw.gauss(0, 0.1) for _ in range(WIDTH)])})


def main(scratch):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    data, first = dataset(folder), None
    for mesh in ("fsdp=1", "fsdp=2", "fsdp=3", "fsdp=4", "data=2,fsdp=2"):
        program = folder / mesh.replace(",", "-")
        training.run([training.tool("branches"), f"--width={WIDTH}", f"--batch={BATCH}", "--lr=0.05",
                      "--clip=1", f"--mesh={mesh}", "-o", program])
        log, final = program.with_suffix(".jsonl"), program.with_suffix(".safetensors")
        training.run([program, "--data", data, "--steps", STEPS, "--seed", 3, "--log", log, "--export", final])
        first = first or (log, final)
        training.compare_log(log, first[0], "--loss=2e-5", "--grad_norm=2e-5", "--distance=2e-5",
                             "--largest=2e-5", f"--steps={STEPS}")
        training.compare_weights(final, first[1], "--absolute=2e-4")
    losses = [json.loads(line)["loss"] for line in first[0].read_text().splitlines()]
    if not losses[-1] < 0.8 * losses[0]:
        sys.exit(f"branches: got loss {losses[-1]} after {STEPS} steps, expected less than 0.8 * {losses[0]}")
    shape = safetensors.read(first[1])["shared.weight"][1]
    if shape != (WIDTH, WIDTH):
        sys.exit(f"branches: 'shared.weight' has shape {shape} in the file, expected {(WIDTH, WIDTH)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
