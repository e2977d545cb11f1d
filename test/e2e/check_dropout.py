#!/usr/bin/env python3
"""check_dropout.py SCRATCH: dropout draws the same masks on every mesh and in every phase.

A batch of 10 on 1, 2, 3, 4 ranks, on 2 x 2 and in two stages: losses and gradient norms of ten steps agree to 2e-5, and
the phases agree in double as check_phases.py says. Another seed draws other masks; without dropout the seed
changes nothing. The evaluation of trained weights does not depend on the seed.
"""

import json
import os
import pathlib
import random
import sys

import check_phases
import training
from check_branches import BATCH, WIDTH, dataset
from check_refusals import write

HIDDEN, STEPS = 16, 10


def initial(folder):
    draw = random.Random(13)
    return write(folder / "init.safetensors", {
        name: ("F32", shape, [draw.gauss(0, 0.4) for _ in range(WIDTH * HIDDEN)])
        for name, shape in (("in.weight", (WIDTH, HIDDEN)), ("out.weight", (HIDDEN, WIDTH)))})


def numbers(log, kind):
    return [entry[kind] for entry in map(json.loads, log.read_text().splitlines()) if kind in entry]


def main(scratch):
    os.environ.update(training.unoptimized_in_each_check())
    folder = pathlib.Path(scratch)
    data, weights, first = dataset(folder), initial(folder), None
    options = [f"--width={WIDTH}", f"--hidden={HIDDEN}", f"--batch={BATCH}", "--lr=0.02", "--clip=1"]
    for mesh in ("fsdp=1", "fsdp=2", "fsdp=3", "fsdp=4", "data=2,fsdp=2", "pipeline=2,fsdp=2"):
        here = folder / mesh.replace(",", "-")
        check_phases.check(here, "dropouts", data, weights, [*options, f"--mesh={mesh}"])
        log, _ = training.train(here / "train", "log", STEPS, weights, data, "--seed=5")
        first = first or log
        training.compare_log(log, first, "--loss=2e-5", "--grad_norm=2e-5", f"--steps={STEPS}")
    program = folder / "fsdp=2" / "train"
    other, _ = training.train(program, "other", STEPS, weights, data, "--seed=6")
    if numbers(other, "loss")[0] == numbers(first, "loss")[0]:
        sys.exit("dropout: got the same loss with another seed, expected other masks")

    # Evaluation has no masks: its result before any update is the same for every seed.
    measured = []
    for seed in (5, 6):
        log, _ = training.train(program, f"evaluated-{seed}", 1, weights, data, f"--seed={seed}", "--lr=0",
                                "--val-data", data, "--eval-every", 1)
        measured.append(numbers(log, "val_loss"))
    if not measured[0] or measured[0] != measured[1]:
        sys.exit(f"dropout: got evaluations {measured[0]} and {measured[1]} with two seeds, expected the same")

    plain = folder / "plain"
    training.run([training.tool("dropouts"), *options, "--rate=0", "--mesh=fsdp=2", "-o", plain])
    logs = [training.train(plain, f"plain-{seed}", STEPS, weights, data, f"--seed={seed}")[0] for seed in (5, 6)]
    if numbers(logs[0], "loss") != numbers(logs[1], "loss"):
        sys.exit("dropout: got losses that depend on the seed with --rate=0, expected the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
