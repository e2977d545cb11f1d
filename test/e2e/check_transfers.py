#!/usr/bin/env python3
"""check_transfers.py SCRATCH IR: programs that send and receive do what the IR says.

IR is a local module for three ranks (test/codegen/transfers.mlir), each of which gives rows to the next one and gradients
back. On two, three and six ranks, and in rings of two (each rank is the other's neighbor on both sides) and three, its interpreter (local, and scheduled in several orders) and its programs for CPUs (over
shared memory, MPI and TCP) and for an emulated GPU log what the formula gives, to 1e-5, and the programs leave the same bits whatever
carries the messages. Compiled to record, both programs print the actions that are read off the IR.
"""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import training
from check_cyclic import compile_for_cpu, compile_for_emulator
from check_refusals import write

STEPS, SAMPLES, BATCH, WIDTH, RATE = 5, 24, 6, 4, 0.1


def dataset(folder):
    draw = random.Random(5)
    rows = [[draw.gauss(0, 1) for _ in range(WIDTH)] for _ in range(SAMPLES)]
    path = write(folder / "data.safetensors", {"x": ("F32", (SAMPLES, WIDTH), [value for row in rows for value in row])})
    return rows, path


def expected_losses(rows, ranks, ring):
    """By the formula: w' = w - rate * d/dw of the mean over samples of |y(rank) - y(rank before)|^2, y = x * w."""
    weight, losses, part = [0.5] * WIDTH, [], BATCH // ranks
    for step in range(STEPS):
        batch = [rows[(step * BATCH + i) % SAMPLES] for i in range(BATCH)]
        loss, gradient = 0.0, [0.0] * WIDTH
        for sample, row in enumerate(batch):
            before = batch[sample - part] if ring or sample >= part else [0.0] * WIDTH
            for i in range(WIDTH):
                difference = row[i] - before[i]
                loss += (difference * weight[i]) ** 2 / BATCH
                gradient[i] += 2 * difference ** 2 * weight[i] / BATCH
        losses.append(loss)
        weight = [w - RATE * g for w, g in zip(weight, gradient)]
    return losses


def compare(got, expected, what):
    if len(got) != STEPS or any(not abs(g - e) <= 1e-5 * max(1, abs(e)) for g, e in zip(got, expected)):
        sys.exit(f"{what}: got losses {got}, expected {expected}")


def interpreted(module, data, *options):
    text = training.run([training.tool("fsdp-run"), module, "--inputs", data, "--numerics=typed", f"--steps={STEPS}",
                         *options]).stdout
    return [float(line.split()[-1]) for line in text.splitlines() if " loss " in line]


def train(program, name, data, *options, launcher=()):
    log, weights = program.parent / f"{name}.jsonl", program.parent / f"{name}.safetensors"
    training.run([*launcher, program, "--data", data, "--steps", STEPS, "--export", weights, "--log", log, *options])
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()], weights


def train_over_tcp(program, name, data, ranks):
    log, weights = program.parent / f"{name}.jsonl", program.parent / f"{name}.safetensors"
    training.run_over_tcp([program, "--data", data, "--steps", STEPS, "--export", weights, "--log", log], ranks)
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()], weights


def check_record(folder, source, expected, name):
    """Compiles `source` to write its actions down."""
    program = folder / f"record-{name}"
    compiler = shutil.which("g++") if name.startswith("cpp") else None  # else that of the build
    got = training.run([training.build_unoptimized([source], program, record=True, compiler=compiler)]).stdout
    if got != expected:
        sys.exit(f"{program} printed\n{got}expected\n{expected}")
    for kind in ("kind=send", "kind=receive"):
        if got.count(kind) != 2:
            sys.exit(f"{program}: got {got.count(kind)} actions of {kind}, expected 2")


def check(folder, text, rows, data, ranks, ring):
    part = BATCH // ranks
    folder = folder / (f"ring-{ranks}" if ring else f"chain-{ranks}")
    folder.mkdir()
    local, module = folder / f"local-{ranks}.mlir", folder / f"scheduled-{ranks}.mlir"
    text = text.replace('["context"=3]', f'["context"={ranks}]').replace("<2x4x", f"<{part}x4x")
    local.write_text(re.sub(r"(fsdp\.(?:send|receive) .*offset -?1) over", r"\1 ring over", text) if ring else text)
    training.run([training.tool("fsdp-opt"), "--fsdp-schedule", "--fsdp-plan-memory", "--fsdp-link-segments",
                  "--fsdp-verify-schedule", local, "-o", module])
    expected = expected_losses(rows, ranks, ring)
    compare(interpreted(local, data), expected, f"local IR on {ranks} ranks")
    for seed in range(5):
        compare(interpreted(module, data, f"--seed={seed}"), expected, f"scheduled IR on {ranks} ranks, seed {seed}")
    actions = training.run([training.tool("fsdp-translate"), "--fsdp-to-record", module]).stdout
    for target, build in (("cpp", compile_for_cpu), ("cuda", compile_for_emulator)):
        source, program = folder / f"{target}-{ranks}.cpp", folder / f"{target}-{ranks}"
        source.write_text(training.run([training.tool("fsdp-translate"), f"--fsdp-to-{target}", module]).stdout)
        build(source, program)
        check_record(folder, source, actions, f"{target}-{ranks}")
        if target == "cuda":
            compare(train(program, f"cuda-{ranks}", data, "--communicator=loopback")[0], expected, f"cuda on {ranks} ranks")
            continue
        losses, reference = train(program, f"{ranks}-shm", data)
        compare(losses, expected, f"cpp on {ranks} ranks over shm")
        others = [("tcp", lambda: train_over_tcp(program, f"{ranks}-tcp", data, ranks))]
        if ranks == 3 and shutil.which("mpirun"):
            launcher = ("mpirun", "-n", "3", "--oversubscribe")
            others.append(("mpi", lambda: train(program, "3-mpi", data, "--communicator=mpi", launcher=launcher)))
        for name, run in others:
            losses, weights = run()
            compare(losses, expected, f"cpp on {ranks} ranks over {name}")
            training.same_bytes(weights, reference)


def check_unreceived(folder, text):
    """A send that no rank receives is refused when the program is compiled."""
    wrong = folder / "wrong.mlir"
    wrong.write_text(re.sub(r"      %after = fsdp.receive.*\n", "      %after = arith.constant dense<0.0> : tensor<2x4xf32>\n", text))
    done = subprocess.run([training.tool("fsdp-opt"), "--fsdp-schedule", "--fsdp-plan-memory", "--fsdp-verify-schedule", wrong],
                          capture_output=True, text=True, check=False)
    if done.returncode == 0 or "but role 'all[context=0]' issues nothing" not in done.stderr:
        sys.exit(f"a send that nobody receives: status {done.returncode}\n{done.stderr}")


def main(scratch, module):
    os.environ.update(training.unoptimized())
    folder, text = pathlib.Path(scratch), pathlib.Path(module).read_text()
    rows, data = dataset(folder)
    for ranks, ring in training.chosen(((2, True), (2, False), (3, False), (6, False), (3, True)), 0, 2):
        check(folder, text, rows, data, ranks, ring)
    check_unreceived(folder, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
