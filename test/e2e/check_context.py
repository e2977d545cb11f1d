#!/usr/bin/env python3
"""check_context.py SCRATCH gpt2|llama: sequences split over `context` compute what one rank computes.

In processes of their own, on meshes with the axis, under every strategy, with every kind of attention, orders of positions and positions that ranks do not divide, and with what else changes a schedule: 8 steps (--all: 20) of AdamW with clipping and validation
have the losses of one rank to 1e-6 (f32; bf16: to 5e-4, against one rank in bf16; --all: 2e-5 and 2e-3). With SGD first gradients are one rank's to 1e-5 of the largest, and weights after
the last step to 1e-5. The measured peak is the report's arena, parameters are stored over `fsdp` and `context` together, text is generated as on one rank, and the
emulated CUDA program agrees as well.
"""

import os
import pathlib
import sys

import training
from check_tensor import CLOSE, CLOSE_BF16, EMULATED_STEPS, SIZES, STEPS, Runs, check_sgd, compare

BOTH = {
    "context-2": ("context=2", []),
    "fsdp": ("fsdp=2,context=2", []),
    "context-4": ("context=4", []),
    "three-axes": ("fsdp=2,context=2,tensor=2", []),
    "whole": ("context=2,tensor=2", ["--sequence-parallel=off"]),
    "zero1": ("fsdp=2,context=2", ["--strategy=zero1"]),
    "zero2": ("context=2,fsdp=2", ["--strategy=zero2", "--accumulate=3"]),
    "ddp": ("data=2,context=2", ["--strategy=ddp", "--accumulate=2"]),
    "hsdp": ("data=2,context=2", ["--strategy=hsdp", "--remat=selective"]),
    "all": ("fsdp=2,context=2", ["--accumulate=2", "--remat=full", "--defer-updates=on", "--loss-chunks=3", "--prefetch=2"]),
    "kept": ("fsdp=2,context=2", ["--reshard-after-forward=axes:context", "--shard=*.weight:0"]),
    "ring": ("context=2", ["--context-attention=ring"]),
    "ring-4": ("context=4", ["--context-attention=ring", "--accumulate=2", "--remat=full"]),
    "ring-three-axes": ("fsdp=2,context=2,tensor=2", ["--context-attention=ring", "--remat=selective"]),
    "ring-contiguous": ("context=4", ["--context-attention=ring", "--context-order=contiguous", "--accumulate=2", "--remat=full"]),
    "gather": ("fsdp=2,context=2", ["--context-attention=gather", "--strategy=zero2", "--accumulate=2"]),
    "gather-4": ("context=4", ["--context-attention=gather", "--remat=every:2"]),
    "gather-contiguous": ("context=4", ["--context-attention=gather", "--context-order=contiguous", "--remat=every:2"]),
}
KIND = {"gpt2": "ring-4", "llama": "gather"}  # of attention by positions, of each check
# Heads that two ranks do not divide: attention is split by positions, in a ring.
ODD = {
    "gpt2": ["--layers=2", "--width=24", "--heads=3", "--context=12", "--vocab=61", "--batch=8"],
    "llama": ["--layers=2", "--width=24", "--heads=6", "--kv-heads=3", "--ffn=40", "--context=12", "--vocab=61", "--batch=8"],
}
# Documents packed into rows: their ids and positions are counted over the whole sequence.
PACKED = ["--document-end=3"]
BF16 = {
    "bf16-zero2": ("fsdp=2,context=2", ["--strategy=zero2"]),
    "bf16-context-4": ("context=4", ["--accumulate=2"]),
    "bf16-ring": ("context=4", ["--context-attention=ring"]),
    "bf16-gather": ("fsdp=2,context=2", ["--context-attention=gather"]),
    "bf16-ring-contiguous": ("context=4", ["--context-attention=ring", "--context-order=contiguous"]),
}


def check_storage(name, report, alone, ranks):
    """Each rank stores its part of all parameters, but for the padding of shards: 16 elements a unit."""
    for key in ("parameters", "gradients", "optimizer"):
        least = -(-alone[key] // ranks)
        if not least <= report[key] <= least + 4096:
            sys.exit(f"{name}: the report says {report[key]} bytes of {key}, expected {least} to {least + 4096}")


def check_generation(runs, weights, sizes):
    """Each rank computes all positions of a text; parameters are gathered over `context`."""
    texts = []
    for mesh in ("fsdp=1", "context=2"):
        program, _ = runs.program(f"generate-{mesh}", sizes, mesh, "--generate")
        texts.append(training.run([program, "generate", "--prompt", "5 17 9", "--tokens", 8, "--temperature=0", "--init", weights]).stdout)
    if not texts[0].split() or texts[0] != texts[1]:
        sys.exit(f"generated {texts[1]!r} on context=2, expected {texts[0]!r}")


def main(scratch, model):
    os.environ.update(training.unoptimized())
    runs = Runs(pathlib.Path(scratch), model)
    # Twice 4 ranks divide the positions, for zigzag order.
    sizes = [*SIZES[model], "--context=16"]
    alone, whole = runs.run("alone", sizes, "fsdp=1")
    for name, (mesh, options) in training.chosen(BOTH, "all", "three-axes", KIND[model]).items():
        got, report = runs.run(name, sizes, mesh, *options)
        compare(name, got[0], alone[0], CLOSE)
        expected = name.split("-")[0] if name.startswith(("ring", "gather")) else "all-to-all"
        if report["context_attention"] != expected:
            sys.exit(f"{name}: got attention by {report['context_attention']}, expected {expected}")
        order = "zigzag" if expected != "all-to-all" and not name.endswith("contiguous") else "contiguous"
        if report["context_order"] != order:
            sys.exit(f"{name}: got positions in {report['context_order']} order, expected {order}")
        if name == "all" and model == "gpt2":
            check_generation(runs, got[1], sizes)
        if name == "all":
            check_storage(name, report, whole, 4)
    packed, _ = runs.run("alone-packed", sizes, "fsdp=1", *PACKED)
    for kind in training.chosen(("all-to-all", "gather"), 0):
        got, _ = runs.run(f"packed-{kind}", sizes, "context=2", f"--context-attention={kind}", *PACKED)
        compare(f"packed-{kind}", got[0], packed[0], CLOSE)
    # Positions that 4 ranks do not divide: the last rank has padding.
    short, _ = runs.run("alone-short", [*sizes, "--context=14"], "fsdp=1")
    for kind in training.chosen(("ring", "gather", "all-to-all"), *((0,) if model == "gpt2" else (1, 2))):
        got, _ = runs.run(f"short-{kind}", [*sizes, "--context=14"], "context=4", f"--context-attention={kind}")
        compare(f"short-{kind}", got[0], short[0], CLOSE)
    # With a rate at which what bf16 rounds does not grow from step to step.
    if training.WHOLE:
        narrow, _ = runs.run("alone-bf16", sizes, "fsdp=1", "--precision=bf16", rate=0.001)
        for name, (mesh, options) in BF16.items():
            got, _ = runs.run(name, sizes, mesh, "--precision=bf16", *options, rate=0.001)
            compare(name, got[0], narrow[0], CLOSE_BF16)
    sgd = {name: (sizes, *BOTH[name]) for name in ("fsdp", "context-4", "zero2", "ring-4", "ring-contiguous", "gather", "gather-contiguous")}
    sgd["odd"] = (ODD[model], "context=2", [])
    check_sgd(runs, training.chosen(sgd, "zero2", *(("odd",) if model == "gpt2" else ())))
    # In an order of its own of all that the streams and threads leave open.
    os.environ["FSDP_EMULATOR"] = "deferred,shuffle,seed=4"
    got, _ = runs.run("cuda", sizes, "fsdp=2,context=2", cuda=True)
    compare("cuda", got[0], alone[0], CLOSE, EMULATED_STEPS)
    for name in training.chosen(("ring", "gather")):
        got, _ = runs.run(f"cuda-{name}", sizes, *BOTH[name][:1], *BOTH[name][1], cuda=True)
        compare(f"cuda-{name}", got[0], alone[0], CLOSE, EMULATED_STEPS)


if __name__ == "__main__":
    main(*sys.argv[1:])
