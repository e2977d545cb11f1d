#!/usr/bin/env python3
"""check_tensor_groups.py SCRATCH: attention of fewer groups of keys and values than ranks over `tensor` computes what one rank computes.

As check_tensor.py, for llama with 8 heads in 2 groups: groups are split over a part of `tensor`, the heads of each over the rest. 8 steps (--all: 20) of AdamW
have the losses of one rank to 1e-6 (bf16: 5e-4; --all: 2e-5 and 2e-3), with SGD first gradients are one rank's to 1e-5 of the largest and weights after the last step to 1e-5.
Other cases: one group for all heads, groups that only a part of the axis divides, groups that no part divides, and a part that is asked for. A
checkpoint of one mesh goes on on another, and with --all the emulated CUDA program agrees. The report's bytes are those of the split, and keys and values count once in norms.
"""

import os
import pathlib
import sys

import training
import weights as safetensors
from check_dropout import numbers
from check_tensor import CLOSE, CLOSE_BF16, EMULATED_STEPS, F32, STEPS, Runs, check_sgd, compare

COMMON = ["--layers=2", "--context=12", "--vocab=61", "--batch=8", "--ffn=40"]
SIZES = ["--width=32", "--heads=8", "--kv-heads=2", *COMMON]
ONE_GROUP = ["--width=32", "--heads=8", "--kv-heads=1", *COMMON]
SIX_GROUPS = ["--width=48", "--heads=12", "--kv-heads=6", *COMMON]
THREE = ["--width=24", "--heads=6", "--kv-heads=2", *COMMON]
ADAMW = {
    "tensor-4": (SIZES, "tensor=4", []),
    "fsdp": (SIZES, "fsdp=2,tensor=4", []),
    "tensor-8": (SIZES, "tensor=8", ["--remat=full"]),
    "zero1": (SIZES, "data=2,tensor=4", ["--strategy=ddp", "--accumulate=2"]),
    "all": (SIZES, "fsdp=2,tensor=4", ["--strategy=zero1", "--accumulate=2", "--remat=full", "--defer-updates=on", "--loss-chunks=3"]),
    "one-group": (ONE_GROUP, "fsdp=2,tensor=2", []),
    "one-group-8": (ONE_GROUP, "tensor=8", []),
    "six-groups": (SIX_GROUPS, "tensor=4", []),
    "no-part": (THREE, "tensor=3", []),
    # Keys and values by groups over the minor part of the axis: moved in front of attention.
    "asked": (SIZES, "tensor=4", ["--shard=*.k_proj.weight:tensor:(2)2,_,_"]),
}
SGD = ("tensor-4", "fsdp", "one-group", "six-groups", "no-part", "asked")


def check_bytes(report, parameters):
    """On tensor=4 a rank has a quarter of what is split, half of keys and values, all of the norms."""
    def part(key, shape, values):
        if "embed_tokens" in key or "lm_head" in key:
            return -(-shape[0] // 4) * shape[1]
        if "k_proj" in key or "v_proj" in key:
            return len(values) // 2
        return len(values) // 4 if "_proj" in key else len(values)

    expected = F32 * sum(part(key, shape, values) for key, (_, shape, values) in parameters.items())
    got = [report[key] for key in ("parameters", "gradients", "optimizer")]
    if got != [expected, expected, 2 * expected]:
        sys.exit(f"the report says {got} bytes of parameters, gradients and optimizer, expected {expected} and twice that")


def check_checkpoints(runs, alone):
    """10 steps on one mesh and 10 on another are 20 of one rank."""
    program, _ = runs.program("saved", SIZES, "tensor=4", "--eps=1e-4", "--lr=0.01")
    folder = runs.folder / "checkpoints"
    runs.train(program, "--save", folder, "--save-every", STEPS // 2, steps=STEPS // 2)
    for name, mesh in training.chosen((("resumed-8", "tensor=8"), ("resumed-2", "fsdp=2"), ("resumed-4", "tensor=4")), 0):
        other, _ = runs.program(name, SIZES, mesh, "--eps=1e-4", "--lr=0.01")
        log, _ = runs.train(other, "--resume", folder)
        ours, wanted = numbers(log, "loss"), numbers(alone[0], "loss")[STEPS // 2:]
        if len(ours) != len(wanted) or any(not abs(a - b) <= CLOSE * abs(b) for a, b in zip(ours, wanted)):
            sys.exit(f"{name}: got losses {ours}, expected {wanted}")


def main(scratch):
    os.environ.update(training.unoptimized())
    runs = Runs(pathlib.Path(scratch), "llama")
    alone = {}

    def one_rank(sizes, *options, rate=0.01):
        key = " ".join([*sizes, *options])
        if key not in alone:
            alone[key] = runs.run(f"alone-{len(alone)}", sizes, "fsdp=1", *options, rate=rate)[0]
        return alone[key]

    for name, (sizes, mesh, options) in training.chosen(ADAMW, "tensor-4", "all", "one-group", "no-part").items():
        got, report = runs.run(name, sizes, mesh, *options)
        compare(name, got[0], one_rank(sizes)[0], CLOSE)
        if name == "tensor-4":
            check_bytes(report, safetensors.read(got[1]))
    got, _ = runs.run("bf16", SIZES, "fsdp=2,tensor=4", "--precision=bf16", rate=0.001)
    compare("bf16", got[0], one_rank(SIZES, "--precision=bf16", rate=0.001)[0], CLOSE_BF16)
    check_sgd(runs, training.chosen({name: ADAMW[name] for name in SGD}, "asked"))
    check_checkpoints(runs, one_rank(SIZES))
    if not training.WHOLE:
        return
    os.environ["FSDP_EMULATOR"] = "deferred,shuffle,seed=4"
    got, _ = runs.run("cuda", SIZES, "tensor=4", cuda=True)
    compare("cuda", got[0], one_rank(SIZES)[0], CLOSE, EMULATED_STEPS)


if __name__ == "__main__":
    main(*sys.argv[1:])
