#!/usr/bin/env python3
"""check_tensor.py SCRATCH gpt2|llama: blocks split over `tensor` compute what one rank computes.

The model's own annotations, on meshes with an axis `tensor`, under every strategy and with what else changes a schedule: 8 steps (--all: 20) of
AdamW with clipping and validation have the losses of one rank to 1e-6 (f32; bf16: to 5e-4, against one rank in bf16; --all: 2e-5 and 2e-3). With SGD
first gradients are one rank's to 1e-5 of the largest, and weights after the last step to 1e-5. Sizes that the axis does not
divide too, positions among them. Positions are split where the axis divides them, where that is asked for, and not where it is turned off. The measured peak is the report's arena, parameters take the bytes that the split leaves, and the emulated CUDA program
agrees as well. Programs are compiled without optimization: it is the runtime that computes.
"""

import json
import os
import pathlib
import sys

import emulated
import training
import weights as safetensors
from check_dropout import numbers

STEPS, EVERY, F32 = 20 if training.WHOLE else 8, 4, 4  # EVERY: from one evaluation to the next
# Relative differences of losses; those of gradient norms may be ten times as large. They grow with the steps: those of rounding, which were
# at most 1.2e-7 and 9e-7 after 8 steps, and those of faults, which are to be found after 8 as after 20.
CLOSE, CLOSE_BF16 = (2e-5, 2e-3) if training.WHOLE else (1e-6, 5e-4)
EMULATED_STEPS = EVERY  # each takes as long as all of a program's for CPUs
SIZES = {
    "gpt2": ["--layers=2", "--width=32", "--heads=4", "--context=12", "--vocab=61", "--batch=8"],
    "llama": ["--layers=2", "--width=32", "--heads=4", "--kv-heads=4", "--ffn=40", "--context=12", "--vocab=61", "--batch=8"],
}
# Sizes that no axis divides: heads, groups of heads, hidden units, samples; and ranks that are left without any.
UNEVEN = {
    "gpt2": ["--layers=2", "--width=18", "--heads=3", "--context=7", "--vocab=61", "--batch=5"],
    "llama": ["--layers=2", "--width=32", "--heads=4", "--kv-heads=2", "--ffn=37", "--context=7", "--vocab=61", "--batch=5"],
}
# Rows that are split in compute are stored in parts of these parts, which need not divide either.
ALONG = ["--shard=*.weight:0"]
# What the axis `tensor` splits: names of parameters have one of these in them, and a vocabulary of rows that need not divide.
# Positions are split too, and their table with them.
SPLIT = {"gpt2": ("wpe.", "c_attn.", "attn.c_proj.weight", "c_fc.", "mlp.c_proj.weight"), "llama": ("_proj.",)}
VOCABULARY = ("wte.", "embed_tokens.", "lm_head.")
BOTH = {
    "fsdp": ("fsdp=2,tensor=2", []),
    "tensor-4": ("tensor=4", []),
    "three-axes": ("data=2,fsdp=2,tensor=2", []),
    "zero1": ("fsdp=2,tensor=2", ["--strategy=zero1"]),
    "zero2": ("fsdp=2,tensor=2", ["--strategy=zero2", "--accumulate=3"]),
    "whole": ("fsdp=2,tensor=2", ["--sequence-parallel=off"]),
    "all": ("fsdp=2,tensor=2", ["--accumulate=2", "--remat=full", "--defer-updates=on", "--loss-chunks=3", "--prefetch=2"]),
}
ADAMW = {
    "gpt2": {
        **BOTH,
        "tensor-2": ("tensor=2", []),
        "tensor-major": ("tensor=2,fsdp=2", []),
        "hsdp": ("data=2,fsdp=2,tensor=2", ["--strategy=hsdp", "--accumulate=2"]),
        "ddp": ("data=2,tensor=2", ["--strategy=ddp"]),
        "remat": ("fsdp=2,tensor=2", ["--remat=full"]),
        "parameters": ("fsdp=2,tensor=2", ["--buckets=parameter"]),
        "kept": ("fsdp=2,tensor=2", ["--reshard-after-forward=never"]),
    },
    "llama": {
        **BOTH,
        "hsdp": ("data=2,fsdp=2,tensor=2", ["--strategy=hsdp"]),
        "ddp": ("data=2,tensor=2", ["--strategy=ddp", "--accumulate=2"]),
        "defer": ("fsdp=2,tensor=2", ["--defer-updates=on"]),
        "chunks": ("fsdp=2,tensor=2", ["--loss-chunks=3"]),
        "accumulate": ("fsdp=2,tensor=2", ["--accumulate=3", "--accumulate-reduce=last"]),
        "dimension": ("fsdp=2,tensor=2", ["--shard=*.layers.*.weight:0"]),
    },
}
OWN = {"gpt2": "hsdp", "llama": "dimension"}  # the further case of each check
SGD = ("fsdp", "tensor-4", "zero2")
BF16 = {"bf16-zero2": ("fsdp=2,tensor=2", ["--strategy=zero2"]), "bf16-tensor-4": ("tensor=4", ["--accumulate=2"])}


class Runs:
    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        folder.mkdir(parents=True, exist_ok=True)
        self.data = training.GOLDEN / model / "tokens.bin"
        os.environ.update(training.unoptimized())

    def program(self, name, sizes, mesh, *options, cuda=False):
        """(program, its report)"""
        options = [*sizes, "--clip=0.5", *options]
        if cuda:
            return emulated.compile_model(self.model, self.folder / name, *options, mesh=mesh), {}
        program, report = self.folder / name, self.folder / f"{name}.json"
        training.run([training.tool(self.model), *options, f"--mesh={mesh}", f"--report={report}", "-o", program])
        return program, json.loads(report.read_text())

    def train(self, program, *options, name=None, steps=STEPS, launcher=()):
        """(log, weights) of a run of `program`."""
        name = name or program.name
        log, weights = self.folder / f"{name}.jsonl", self.folder / f"{name}.safetensors"
        training.run([*launcher, program, "--data", self.data, "--steps", steps, "--seed=5", "--log", log, "--export", weights, *options])
        return log, weights

    def run(self, name, sizes, mesh, *options, rate=0.01, cuda=False):
        """((log, weights), report) of AdamW; of an emulated CUDA program with `cuda`, EMULATED_STEPS."""
        # Parameters whose gradient is zero but for rounding (biases of keys) must not be moved by it.
        program, report = self.program(name, sizes, mesh, "--eps=1e-4", f"--lr={rate}", *options, cuda=cuda)
        extra = ["--communicator=loopback"] if cuda else []
        result = self.train(program, "--val-data", self.data, "--eval-every", EVERY, *extra, name=name,
                            steps=EMULATED_STEPS if cuda else STEPS)
        if report and (got := max(numbers(result[0], "peak_bytes"))) != report["arena"]:
            sys.exit(f"{name}: measured a peak of {got} bytes, expected the report's arena, {report['arena']}")
        return result, report


def compare(name, got, expected, tolerance, steps=STEPS):
    training.compare_log(got, expected, f"--loss={tolerance}", f"--grad_norm={10 * tolerance}", f"--steps={steps}")
    ours, wanted = numbers(got, "val_loss"), numbers(expected, "val_loss")
    if len(wanted) != STEPS // EVERY or len(ours) != steps // EVERY:
        sys.exit(f"{name}: got validation losses {ours} and {wanted}, expected {steps // EVERY} and {STEPS // EVERY}")
    for a, b in zip(ours, wanted):
        if not abs(a - b) <= tolerance * abs(b):
            sys.exit(f"{name}: got a validation loss of {a}, expected {b}")


def check_bytes(name, report, parameters, patterns, ranks):
    """Without other axes: a rank has its part of what is split, and all of the rest."""
    def part(key, shape, values):
        if any(pattern in key for pattern in VOCABULARY):
            return -(-shape[0] // ranks) * (len(values) // shape[0])
        return len(values) // (ranks if any(pattern in key for pattern in patterns) else 1)

    expected = sum(part(key, shape, values) for key, (_, shape, values) in parameters.items())
    if [report[key] for key in ("parameters", "gradients", "optimizer")] != [F32 * expected, F32 * expected, 2 * F32 * expected]:
        sys.exit(f"{name}: the report says {report['parameters']}, {report['gradients']} and {report['optimizer']} bytes of parameters, "
                 f"gradients and optimizer, expected {expected} elements of f32 of each and twice of the last")


def compare_gradients(name, first, got, expected):
    """Of one step of SGD with rate 1 from `first`: within 1e-5 of the largest of the model."""
    first, got, expected = (safetensors.read(path) for path in (first, got, expected))
    largest = max(abs(a - b) for key in first for a, b in zip(first[key][2], expected[key][2]))
    worst = max(abs(a - b) for key in first for a, b in zip(got[key][2], expected[key][2]))
    if not largest > 1e-3 or not worst <= 1e-5 * largest:
        sys.exit(f"{name}: first gradients differ by {worst}, expected at most 1e-5 of the largest, {largest}")
    print(f"gradients: differ by {worst / largest:.2g} of the largest")


def check_sgd(runs, cases):
    """`cases`: name -> (sizes, mesh, options); each compared with one rank of its sizes."""
    alone = {}
    for name, (sizes, mesh, options) in cases.items():
        key = " ".join(sizes)
        if key not in alone:
            program, _ = runs.program(f"sgd-alone-{len(alone)}", sizes, "fsdp=1", "--optimizer=sgd")
            alone[key] = [runs.train(program, "--lr=0", steps=1, name=f"{program.name}-first")[1],
                          runs.train(program, "--lr=1", steps=1, name=f"{program.name}-step")[1],
                          runs.train(program, "--lr=0.1")]
        first, step, end = alone[key]
        program, _ = runs.program(f"sgd-{name}", sizes, mesh, "--optimizer=sgd", *options)
        compare_gradients(name, first, runs.train(program, "--lr=1", steps=1, name=f"{program.name}-step")[1], step)
        log, weights = runs.train(program, "--lr=0.1")
        training.compare_log(log, end[0], f"--loss={CLOSE}", f"--grad_norm={10 * CLOSE}", f"--steps={STEPS}")
        training.compare_weights(weights, end[1], "--absolute=1e-5")


def main(scratch, model):
    runs = Runs(pathlib.Path(scratch), model)
    sizes = SIZES[model]
    alone, _ = runs.run("alone", sizes, "fsdp=1")
    for name, (mesh, options) in training.chosen(ADAMW[model], "tensor-4", "three-axes", "all", OWN[model]).items():
        got, report = runs.run(name, sizes, mesh, *options)
        compare(name, got[0], alone[0], CLOSE)
        if mesh == "tensor=4":
            check_bytes(name, report, safetensors.read(got[1]), SPLIT[model], 4)
    # With a rate at which what bf16 rounds does not grow from step to step.
    narrow, _ = runs.run("alone-bf16", sizes, "fsdp=1", "--precision=bf16", rate=0.001)
    for name, (mesh, options) in training.chosen(BF16, "bf16-zero2").items():
        got, _ = runs.run(name, sizes, mesh, "--precision=bf16", *options, rate=0.001)
        compare(name, got[0], narrow[0], CLOSE_BF16)
    uneven = UNEVEN[model]
    alone_uneven, _ = runs.run("alone-uneven", uneven, "fsdp=1")
    got, _ = runs.run("uneven", uneven, "tensor=4", "--sequence-parallel=on")
    compare("uneven", got[0], alone_uneven[0], CLOSE)
    check_sgd(runs, training.chosen({**{name: (sizes, *ADAMW[model][name]) for name in SGD},
                                     "uneven-tensor-2": (uneven, "tensor=2", []),
                                     "uneven-fsdp": (uneven, "fsdp=2,tensor=2", ALONG)},
                                    "zero2", "uneven-fsdp"))
    # In an order of its own of all that the streams and threads leave open.
    os.environ["FSDP_EMULATOR"] = "deferred,shuffle,seed=4"
    got, _ = runs.run("cuda", uneven, "fsdp=2,tensor=2", "--sequence-parallel=on", *ALONG, cuda=True)
    compare("cuda", got[0], alone_uneven[0], CLOSE, EMULATED_STEPS)


if __name__ == "__main__":
    main(*sys.argv[1:])
