#!/usr/bin/env python3
"""check_cyclic.py SCRATCH IR COUNTER: programs whose segments are not joined do what the IR says.

IR is a scheduled module that accumulates over four microbatches (test/codegen/cyclic.mlir). On one and two ranks
its programs for CPUs and for an emulated GPU log what the interpreter logs, to 1e-5, and an evaluation after each
step, for which the driver waits for all that runs, sees that step's update and changes no bit of the weights.
Streams that run late and in a random order change no bit either, but where a wait across segments is left out.
COUNTER counts allocations as in check_allocations.py.
"""

import json
import os
import pathlib
import random
import shlex
import sys

import emulated
import training
from check_refusals import write

STEPS, SAMPLES = 12, 24


def dataset(folder):
    draw = random.Random(3)
    rows = {"x": 5, "y": 3}
    return write(folder / "data.safetensors",
                 {name: ("F32", (SAMPLES, width), [draw.gauss(0, 1) for _ in range(SAMPLES * width)])
                  for name, width in rows.items()})


def interpreted(module, data):
    """A dict for each step, as in the program's log."""
    text = training.run([training.tool("fsdp-run"), module, "--inputs", data, "--numerics=typed",
                         f"--steps={STEPS}", "--segment=train,evaluate"]).stdout
    steps = [{} for _ in range(STEPS)]
    for line in text.splitlines():
        _, number, walk, name, value = line.split()
        steps[int(number) - 1][name if walk == "train" else f"val_{name}"] = float(value)
    return steps


def compile_for_cpu(source, program):
    training.build_unoptimized([source], program)


def compile_for_emulator(source, program):
    words = {name: shlex.split(text) for name, text in emulated.settings().items()}
    training.run([*words["compiler"], *words["kernel-headers"], *words["flags"], *words["kernel-flags"], f"-I{emulated.ROOT}", "-MD", "-MF",
                  f"{program}.d", "-c", source, "-o", f"{program}.o"])
    training.run([*words["compiler"], f"{program}.o", *words["link"], "-o", program])


def train(program, name, data, *options):
    log, weights = program.parent / f"{name}.jsonl", program.parent / f"{name}.safetensors"
    training.run([program, "--data", data, "--steps", STEPS, "--export", weights, "--log", log, *options])
    return [json.loads(line) for line in log.read_text().splitlines()], weights


def compare(steps, expected, names, what):
    if len(steps) != STEPS:
        sys.exit(f"{what}: got {len(steps)} steps, expected {STEPS}")
    for number, (got, wanted) in enumerate(zip(steps, expected), 1):
        for name in names:
            if not abs(got[name] - wanted[name]) <= 1e-5 * max(1, abs(wanted[name])):
                sys.exit(f"{what}, step {number}: got {name} {got[name]}, expected {wanted[name]}")


def check(folder, text, data, ranks, counter):
    module = folder / f"cyclic-{ranks}.mlir"
    module.write_text(text.replace('["fsdp"=2]', f'["fsdp"={ranks}]'))
    expected = interpreted(module, data)
    if expected[0]["loss"] == expected[-1]["loss"] or "val_loss" not in expected[0]:
        sys.exit(f"the interpreter logs {expected}, expected losses that change, and evaluations")
    evaluations = ["--val-data", data, "--eval-every", 1]
    for target, build in (("cpp", compile_for_cpu), ("cuda", compile_for_emulator)):
        source, program = folder / f"{target}-{ranks}.cpp", folder / f"{target}-{ranks}"
        source.write_text(training.run([training.tool("fsdp-translate"), f"--fsdp-to-{target}", module]).stdout)
        build(source, program)
        what = f"{target} on {ranks} ranks"
        loopback = ["--communicator=loopback"] if target == "cuda" and ranks > 1 else []
        steps, weights = train(program, f"{target}-{ranks}-plain", data, *loopback)
        compare(steps, expected, ("loss", "grad_norm", "lr"), what)
        steps, evaluated = train(program, f"{target}-{ranks}-evaluated", data, *evaluations, *loopback)
        compare(steps, expected, ("loss", "grad_norm", "lr", "val_loss"), what)
        training.same_bytes(weights, evaluated)
        if target == "cpp":
            counts = folder / f"allocations-{ranks}"
            os.environ["FSDP_TEST_ALLOCATIONS"], os.environ["LD_PRELOAD"] = str(counts), counter
            train(program, f"{target}-{ranks}-counted", data)
            del os.environ["LD_PRELOAD"]
            ours = [int(line.split()[0]) for line in counts.read_text().splitlines()]
            if len(ours) != STEPS or not ours[0] or any(ours[1:]):
                sys.exit(f"{what}: got allocations {ours} before each step's line, expected none after the first")
            continue
        for seed in range(3):
            os.environ["FSDP_EMULATOR"] = f"deferred,guard,seed={seed}"
            late, late_weights = train(program, f"{target}-{ranks}-late-{seed}", data, *loopback)
            del os.environ["FSDP_EMULATOR"]
            compare(late, expected, ("loss", "grad_norm", "lr"), f"{what}, late")
            training.same_bytes(weights, late_weights)


def check_missing_wait(folder, text, data):
    """Without the waits of the loads for those who use what was loaded before, the order of streams shows."""
    module, source, program = folder / "missing.mlir", folder / "missing.cpp", folder / "missing"
    module.write_text(text.replace('["fsdp"=2]', '["fsdp"=1]').replace("wait(%consumed) outs(%x", "outs(%x"))
    source.write_text(training.run([training.tool("fsdp-translate"), "--fsdp-to-cuda", module]).stdout)
    compile_for_emulator(source, program)
    seen = set()
    for seed in range(6):
        os.environ["FSDP_EMULATOR"] = f"deferred,seed={seed}"
        seen.add(train(program, f"missing-{seed}", data)[1].read_bytes())
        del os.environ["FSDP_EMULATOR"]
    if len(seen) == 1:
        sys.exit("a missing wait changes nothing in 6 orders of the streams, expected different weights")


def main(scratch, ir, counter):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    text, data = pathlib.Path(ir).read_text(), dataset(folder)
    for ranks in (1, 2):
        check(folder, text, data, ranks, counter)
    check_missing_wait(folder, text, data)


if __name__ == "__main__":
    main(*sys.argv[1:])
