#!/usr/bin/env python3
"""check_optimizers.py SCRATCH [RULE ...]: what every update rule must do, on gpt2 of two layers, six steps.

The rules are those that --help lists. Losses on 2 and 4 ranks under other strategies, in microbatches and with deferred
updates are those of one rank to 2e-5; a run that is resumed from a checkpoint has the same bits as one that was not stopped; the emulated
CUDA program of lion (--all: of each rule) on two ranks agrees with the CPU's on one to 1e-5. Weight decay and clipping are on.
"""

import json
import os
import pathlib
import sys

import emulated
import training

STEPS, SAVED, EMULATED_STEPS = 6, 4, 3
GPT2 = training.GOLDEN / "gpt2"
SIZES = ["--layers=2", "--width=32", "--heads=4", "--context=16", "--vocab=61", "--batch=8"]
MESHES = {
    "zero1": ["--mesh=fsdp=2", "--strategy=zero1", "--accumulate=2"],
    "hsdp": ["--mesh=data=2,fsdp=2", "--strategy=hsdp", "--defer-updates=on"],
}


def losses(log):
    return [entry["loss"] for entry in map(json.loads, log.read_text().splitlines()) if "loss" in entry]


def train(program, name, *options, steps=STEPS):
    log, weights = program.parent / f"{name}.jsonl", program.parent / f"{name}.safetensors"
    training.run([program, "--data", GPT2 / "tokens.bin", "--steps", steps, "--seed=5", "--log", log, "--export", weights,
                  *options])
    if not losses(log):
        sys.exit(f"{log}: no losses")
    return log, weights


def compile_model(folder, name, *options):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    training.run([training.tool("gpt2"), *SIZES, *options, "-o", program])
    return program


def check(folder, rule, meshes):
    options = [f"--optimizer={rule}", "--lr=1e-3", "--clip=0.5", "--weight-decay=0.1"]
    one = compile_model(folder, "one", "--mesh=fsdp=1", *options)
    log, _ = train(one, "expected")
    for name, mesh in meshes.items():
        program = compile_model(folder, name, *mesh, *options)
        other, others = train(program, f"{name}-run")
        training.compare_log(other, log, "--loss=2e-5", "--grad_norm=2e-4")
        # The same bits from a checkpoint on.
        saved = folder / f"{name}-saved"
        train(program, f"{name}-first", "--save", saved, steps=SAVED)
        _, resumed = train(program, f"{name}-rest", f"--resume={saved / f'step-{SAVED:08}'}")
        training.same_bytes(resumed, others)
    if not training.WHOLE and rule != "lion":
        return
    cuda = emulated.compile_model("gpt2", folder, *SIZES, *options, ranks=2)
    device, _ = emulated.train(cuda, "cuda", EMULATED_STEPS, GPT2 / "init.safetensors", GPT2 / "tokens.bin", ranks=2)
    host, _ = training.train(one, "host", EMULATED_STEPS, GPT2 / "init.safetensors", GPT2 / "tokens.bin")
    training.compare_log(device, host, "--loss=1e-5", "--grad_norm=1e-4")


def main(scratch, *chosen):
    os.environ.update(training.unoptimized())
    for number, rule in enumerate(chosen or training.update_rules()):
        # Each check has one of the meshes for each rule.
        check(pathlib.Path(scratch) / rule, rule, training.chosen(MESHES, list(MESHES)[number % len(MESHES)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
