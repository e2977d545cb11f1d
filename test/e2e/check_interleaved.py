#!/usr/bin/env python3
"""check_interleaved.py SCRATCH WALK INTERLEAVED: a segment of several microbatches trains like a walk of one for each.

WALK and INTERLEAVED are scheduled modules of one model (test/interpreter/interleaved-microbatches.test). Their programs
for CPUs, on two ranks, have the same losses, norms and evaluations bit for bit, and the same weights, which are those of
the interpreter to 1e-5; the program of INTERLEAVED for an emulated GPU, with streams that run late and in random orders,
is within 1e-5 of them. The last evaluation batch is incomplete, so some microbatches have samples that do not count.
"""

import json
import os
import pathlib
import random
import sys

import training
from check_cyclic import compare, compile_for_cpu, compile_for_emulator
from check_refusals import write

STEPS, SAMPLES, EVALUATED = 12, 30, 17
NAMES = ("loss", "grad_norm", "lr", "val_loss")


def dataset(folder, name, samples):
    draw = random.Random(samples)
    rows = {"x": 5, "y": 3}
    return write(folder / name, {key: ("F32", (samples, width), [draw.gauss(0, 1) for _ in range(samples * width)])
                                 for key, width in rows.items()})


def train(program, name, data, evaluated, *options):
    log, weights = program.parent / f"{name}.jsonl", program.parent / f"{name}.safetensors"
    training.run([program, "--data", data, "--steps", STEPS, "--export", weights, "--log", log, "--val-data", evaluated,
                  "--eval-every", 1, "--seed=5", *options])
    return [json.loads(line) for line in log.read_text().splitlines()], weights


def numbers(steps):
    return [{name: step[name] for name in NAMES} for step in steps]


def emit(module, folder, target, build):
    source, program = folder / f"{module.stem}-{target}.cpp", folder / f"{module.stem}-{target}"
    source.write_text(training.run([training.tool("fsdp-translate"), f"--fsdp-to-{target}", module]).stdout)
    build(source, program)
    return program


def main(scratch, walk, interleaved):
    os.environ.update(training.unoptimized())
    folder, walk, interleaved = pathlib.Path(scratch), pathlib.Path(walk), pathlib.Path(interleaved)
    data, evaluated = dataset(folder, "data.safetensors", SAMPLES), dataset(folder, "evaluated.safetensors", EVALUATED)
    expected, weights = train(emit(walk, folder, "cpp", compile_for_cpu), "walk", data, evaluated)
    losses = [step["loss"] for step in expected]
    if len(set(losses)) != STEPS:
        sys.exit(f"got losses {losses}, expected different ones")
    program = emit(interleaved, folder, "cpp", compile_for_cpu)
    got, own = train(program, "interleaved", data, evaluated)
    if numbers(got) != numbers(expected):
        sys.exit(f"got {numbers(got)}, expected the bits of a walk of microbatches, {numbers(expected)}")
    training.same_bytes(own, weights)

    # The interpreter takes the same samples and draws the same masks.
    text = training.run([training.tool("fsdp-run"), interleaved, "--inputs", data, "--numerics=typed", "--seed=5",
                         f"--steps={STEPS}"]).stdout
    interpreted = [float(line.split()[-1]) for line in text.splitlines() if " loss " in line]
    for number, (loss, wanted) in enumerate(zip(losses, interpreted, strict=True), 1):
        if not abs(loss - wanted) <= 1e-5 * max(1, abs(wanted)):
            sys.exit(f"step {number}: got loss {loss}, expected {wanted}, which the interpreter logs")

    emulated = emit(interleaved, folder, "cuda", compile_for_emulator)
    for seed in range(3):
        os.environ["FSDP_EMULATOR"] = f"deferred,guard,seed={seed}"
        late, _ = train(emulated, f"late-{seed}", data, evaluated, "--communicator=loopback")
        del os.environ["FSDP_EMULATOR"]
        compare(late, expected, NAMES, f"emulated GPU, seed {seed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
