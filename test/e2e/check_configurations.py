#!/usr/bin/env python3
"""check_configurations.py SCRATCH [--all] [--only NAME,...]: axes, strategies and options in combination compute what one rank computes.

65 configurations of gpt2 and llama, a process for each of up to eight ranks, over the axes data, fsdp, context, tensor and pipeline. In f32 first
gradients (SGD) are one rank's to 4e-6 of the largest, the weights of 8 steps of SGD to 4e-8, and the losses of 8 steps of AdamW with
clipping to 8e-7; with --all those of 20 steps to 1e-7 and 2e-6. The rank that those with `pipeline` are compared with has as many microbatches, layers and documents.
In bf16 the comparison is with one rank in bf16: gradients to 2^-6 of the largest, weights and losses to 5e-4.
Without --all (or ./check --all): the configurations of CHECKED. Prints the distances of each and the worst of all.
"""

import argparse
import json
import pathlib
import sys

import training
import weights as safetensors
from check_tensor import Runs

STEPS = 20 if training.WHOLE else 8
SIZES = {
    "gpt2": ["--layers=2", "--width=32", "--heads=8", "--context=16", "--vocab=61", "--batch=8"],
    "llama": ["--layers=2", "--width=32", "--heads=8", "--kv-heads=4", "--ffn=40", "--context=16", "--vocab=61", "--batch=8"],
}
RING, GATHER, HEADS = (f"--context-attention={kind}" for kind in ("ring", "gather", "all-to-all"))
GPIPE, ZB, INTERLEAVED = (f"--pipeline-schedule={kind}" for kind in ("gpipe", "zb", "interleaved:2"))  # else 1f1b
ON, OFF, BF16 = "--sequence-parallel=on", "--sequence-parallel=off", "--precision=bf16"
CONFIGURATIONS = {
    "gpt2": (
        ("fsdp=8", "--accumulate=2"),
        ("data=8", "--strategy=ddp"),
        ("data=2,fsdp=4", "--strategy=zero2", "--accumulate=4"),
        ("tensor=8", ON),
        ("tensor=4", OFF, "--remat=full"),
        ("data=2,fsdp=2,tensor=2", "--strategy=hsdp", "--accumulate=2", ON),
        ("fsdp=4,tensor=2", "--strategy=zero1", OFF, "--remat=selective"),
        ("context=8",),
        ("context=8", RING),
        ("context=8", "--strategy=zero1", GATHER, "--accumulate=2"),
        ("fsdp=2,context=2,tensor=2", HEADS, ON),
        ("fsdp=2,context=4", "--strategy=zero2", RING, "--accumulate=2"),
        ("data=2,context=4", "--strategy=hsdp", GATHER, "--remat=selective"),
        ("data=2,context=2,tensor=2", "--strategy=ddp", RING, OFF),
        ("context=2,tensor=4", HEADS, ON, "--remat=full"),
        ("data=2,fsdp=2,context=2", "--strategy=hsdp", HEADS, "--remat=every:2", "--accumulate=2"),
        ("fsdp=3,context=2", RING, "--remat=full"),
        ("fsdp=2,context=2,tensor=2", "--strategy=zero1", GATHER, ON, "--accumulate=2", BF16),
        ("context=4", RING, "--remat=full", BF16),
        ("data=2,fsdp=2,tensor=2", "--strategy=zero2", ON, BF16),
        ("pipeline=2", "--accumulate=4"),
        ("pipeline=2,fsdp=2", ZB, "--accumulate=4", "--tied-gradients=once"),
        ("pipeline=2,data=2", "--strategy=ddp", GPIPE, "--accumulate=3", "--document-end=3"),
        ("pipeline=2,fsdp=4", "--strategy=zero1", "--accumulate=2", "--remat=full"),
        ("pipeline=2,data=2,fsdp=2", "--strategy=hsdp", INTERLEAVED, "--accumulate=4"),
        ("pipeline=2,fsdp=2,tensor=2", ZB, ON, "--accumulate=4", "--remat=selective"),
        ("pipeline=2,context=2", RING, "--accumulate=4", "--stages=3,1"),
        ("pipeline=4", "--accumulate=8", "--stages=1,1,1,1", "--tied-gradients=once"),
        ("pipeline=3,fsdp=2", GPIPE, "--accumulate=2", "--reshard-after-forward=never"),
        ("pipeline=8", "--accumulate=8", "--layers=6"),
        ("pipeline=2,context=2,tensor=2", ZB, HEADS, ON, "--accumulate=2"),
        ("pipeline=2,fsdp=2,context=2", "--strategy=zero2", GATHER, "--accumulate=4", "--accumulate-reduce=last"),
        ("pipeline=2,fsdp=2,tensor=2", "--strategy=zero2", ON, "--accumulate=4", BF16),
    ),
    "llama": (
        ("fsdp=7", "--remat=full"),
        ("data=4,fsdp=2", "--strategy=hsdp", "--accumulate=2"),
        ("fsdp=2,tensor=4", OFF, "--accumulate=4"),
        ("tensor=8", "--strategy=ddp", ON, "--remat=selective"),
        ("fsdp=4,tensor=2", "--strategy=zero2", ON),
        ("data=2,tensor=3", "--strategy=ddp", ON),
        ("context=8",),
        ("context=8", "--strategy=zero2", RING, "--accumulate=2"),
        ("context=4", "--strategy=ddp", RING, "--remat=every:2"),
        ("data=3,context=2", "--strategy=ddp", RING),
        ("context=2,fsdp=4", HEADS),
        ("data=2,context=4", "--strategy=hsdp", RING, "--accumulate=2", "--remat=full"),
        ("data=2,context=4", "--strategy=ddp", GATHER),
        ("fsdp=2,context=4", "--strategy=zero1", HEADS, "--remat=selective"),
        ("fsdp=2,context=2,tensor=2", RING, ON, "--accumulate=2"),
        ("data=2,context=2,tensor=2", "--strategy=hsdp", GATHER, OFF),
        ("context=4,tensor=2", HEADS, ON, "--remat=full"),
        ("context=2,tensor=4", GATHER, ON, "--strategy=zero2"),
        ("fsdp=2,context=2,tensor=2", "--strategy=zero2", RING, ON, "--remat=full", BF16),
        ("data=2,context=4", "--strategy=hsdp", HEADS, "--accumulate=2", BF16),
        ("pipeline=2", GPIPE),
        ("pipeline=4,fsdp=2", "--accumulate=4", "--loss-chunks=3"),
        ("pipeline=2,fsdp=2", INTERLEAVED, "--accumulate=4", "--remat=every:2"),
        ("pipeline=3", ZB, "--accumulate=5", "--stages=1,2,1"),
        ("pipeline=2,data=2,tensor=2", "--strategy=ddp", GPIPE, OFF, "--accumulate=2"),
        ("pipeline=2,fsdp=2", ZB, "--accumulate=3", "--buckets=parameter", "--document-end=3"),
        ("pipeline=2,context=4", RING, "--accumulate=4", "--remat=full"),
        ("pipeline=2,context=2", INTERLEAVED, GATHER, "--accumulate=4", "--layers=6"),
        ("pipeline=4,tensor=2", ZB, ON, "--accumulate=8"),
        ("pipeline=2,data=2,fsdp=2", "--strategy=hsdp", "--accumulate=6", "--reshard-after-forward=never", "--defer-updates=on"),
        ("pipeline=8", GPIPE, "--accumulate=4", "--layers=6"),
        ("pipeline=2,context=2", ZB, HEADS, "--accumulate=4", BF16),
    ),
}
CHECKED = {("gpt2", 25), ("llama", 3), ("llama", 14)}
# Gradients as a share of the largest, weights absolute, losses relative; the last two for each of the steps.
ALLOWED = {"gradients": 4e-6, "weights": STEPS * 5e-9, "losses": STEPS * 1e-7}
ALLOWED_BF16 = {"gradients": 2**-6, "weights": 5e-4, "losses": 5e-4}


def values(path):
    return {name: numbers for name, (_, _, numbers) in safetensors.read(path).items()}


def farthest(got, expected):
    return max(abs(a - b) for name in expected for a, b in zip(got[name], expected[name], strict=True))


def losses(log):
    found = [entry["loss"] for entry in map(json.loads, log.read_text().splitlines()) if "loss" in entry]
    if len(found) != STEPS:
        sys.exit(f"{log}: got {len(found)} steps, expected {STEPS}")
    return found


class Measured:
    """What one program of SGD and one of AdamW compute."""

    def __init__(self, runs, name, mesh, options):
        narrow = BF16 in options
        sgd, self.report = runs.program(f"{name}-sgd", SIZES[runs.model], mesh, "--optimizer=sgd", *options)
        self.start, self.step = (values(runs.train(sgd, f"--lr={rate}", steps=1, name=f"{name}-{rate}")[1]) for rate in (0, 1))
        self.weights = values(runs.train(sgd, "--lr=0.1", name=f"{name}-sgd", steps=STEPS)[1])
        # Parameters whose gradient is zero but for rounding (biases of keys) must not be moved by it; with a rate at which what bf16
        # rounds does not grow from step to step.
        adamw, _ = runs.program(f"{name}-adamw", SIZES[runs.model], mesh, "--eps=1e-4", f"--lr={0.001 if narrow else 0.01}", *options)
        self.losses = losses(runs.train(adamw, name=f"{name}-adamw", steps=STEPS)[0])

    def distances(self, alone):
        largest = farthest(alone.step, alone.start)
        if not largest > 1e-3:
            sys.exit(f"got {largest} as the largest gradient, expected more than 1e-3")
        if farthest(self.start, alone.start) != 0:
            sys.exit("got other initial weights, expected those of one rank")
        return {"gradients": farthest(self.step, alone.step) / largest, "weights": farthest(self.weights, alone.weights),
                "losses": max(abs(a / b - 1) for a, b in zip(self.losses, alone.losses, strict=True))}


def check_all(folder, only):
    worst, wrong = {}, []
    for model, configurations in CONFIGURATIONS.items():
        runs, alone = Runs(folder / model, model), {}
        for number, (mesh, *options) in enumerate(configurations):
            if (model, number) not in only:
                continue
            precision = [option for option in options if option == BF16]
            key = "bf16" if precision else "f32"
            as_many = [option for option in options if option.startswith(("--layers=", "--accumulate=", "--document-end=")) and "pipeline" in mesh]
            reference = "-".join(("alone", key, *(option[2:] for option in sorted(as_many))))
            if reference not in alone:
                alone[reference] = Measured(runs, reference, "fsdp=1", [*precision, *as_many])
            name = f"{model}-{number}"
            got = Measured(runs, name, mesh, options)
            kind = [option.partition("=")[2] for option in options if option in (RING, GATHER, HEADS)]
            if kind and got.report["context_attention"] != kind[0]:
                sys.exit(f"{name}: got attention by {got.report['context_attention']}, expected {kind[0]}")
            distances = got.distances(alone[reference])
            print(f"{name}: --mesh={mesh} {' '.join(options)}: " + ", ".join(f"{what} {value:.2g}" for what, value in distances.items()), flush=True)
            for what, value in distances.items():
                worst[key, what] = max(worst.get((key, what), 0.0), value)
                if not value <= (ALLOWED_BF16 if precision else ALLOWED)[what]:
                    wrong.append(f"{name}: --mesh={mesh} {' '.join(options)}: {what} differ by {value:.2g} from one rank's, "
                                 f"expected at most {(ALLOWED_BF16 if precision else ALLOWED)[what]:.2g}")
    print(f"worst of {len(only)}: " + ", ".join(f"{key} {what} {value:.2g}" for (key, what), value in worst.items()))
    if wrong:
        sys.exit("\n".join(wrong))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", help="names such as gpt2-3, by commas")
    arguments = parser.parse_args()
    every = {(model, number) for model, of in CONFIGURATIONS.items() for number in range(len(of))}
    if arguments.only:
        only = {(name.partition("-")[0], int(name.partition("-")[2])) for name in arguments.only.split(",")}
        if not only <= every:
            sys.exit(f"--only: got {arguments.only}, expected names from gpt2-0 to llama-{len(CONFIGURATIONS['llama']) - 1}")
    else:
        only = every if arguments.all or training.WHOLE else CHECKED
    check_all(arguments.scratch, only)


if __name__ == "__main__":
    main()
