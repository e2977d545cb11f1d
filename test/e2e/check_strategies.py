#!/usr/bin/env python3
"""check_strategies.py SCRATCH: how parameters are spread changes where they are, never what is computed.

Ten steps of `mlp` on the same weights and batches. What only moves things in time (prefetch, when a unit is
given up) leaves the same bits; other placements and meshes agree to 2e-6 in loss and 2e-5 in gradient norm.
The report says what each choice costs: without prefetch one unit is whole at once, with it two.

Every strategy, and storage over several axes, with 20 steps of AdamW on 2 and 4 ranks: losses agree with one rank to 2e-5, so
do validation and weights; the report has the bytes of docs/strategies.md, and the measured peak is the arena. The emulated CUDA program (with --all under zero1 and zero2 too),
bf16 and microbatches agree with what they should.
"""

import json
import os
import pathlib
import sys

import emulated
import training
import weights as safetensors
from check_dropout import numbers

STEPS, F32 = 10, 4

NEUTRAL = {
    "prefetch-0": ["--prefetch=0"],
    "prefetch-2": ["--prefetch=2"],
    "kept-after-forward": ["--reshard-after-forward=never"],
    "shared-memory": ["--communicator=shm"],
    "bucket-of-each": ["--buckets=parameter"],
}
EQUIVALENT = {
    "replicated": ["--strategy=ddp"],
    "small-ones-replicated": ["--min-shard-size=100"],
    "by-pattern": ["--shard=*.bias:replicated", "--shard=fc1.weight:1", "--shard=head.weight:flat"],
    "hybrid": ["--mesh=data=2,fsdp=2", "--strategy=hsdp"],
    "no-shards": ["--mesh=data=3"],
}


# Name: mesh, options, and over how many ranks parameters, gradients and optimizer state are split.
TABLE = {
    "ddp-2": ("fsdp=2", ["--strategy=ddp"], (1, 1, 1)),
    "ddp-4": ("data=4", ["--strategy=ddp"], (1, 1, 1)),
    "zero1-2": ("fsdp=2", ["--strategy=zero1"], (1, 2, 2)),
    "zero1-4": ("fsdp=4", ["--strategy=zero1"], (1, 4, 4)),
    "zero1-2x2": ("data=2,fsdp=2", ["--strategy=zero1"], (1, 2, 2)),
    "zero1-parts": ("fsdp=2", ["--strategy=zero1", "--accumulate=3"], (1, 2, 2)),
    "zero2-2": ("fsdp=2", ["--strategy=zero2"], (1, 2, 2)),
    "zero2-4": ("fsdp=4", ["--strategy=zero2"], (1, 4, 4)),
    "zero2-2x2": ("data=2,fsdp=2", ["--strategy=zero2"], (1, 2, 2)),
    "zero2-parts": ("fsdp=2", ["--strategy=zero2", "--accumulate=3"], (1, 2, 2)),
    "fsdp-2": ("fsdp=2", ["--strategy=fsdp"], (2, 2, 2)),
    "fsdp-4": ("fsdp=4", ["--strategy=fsdp"], (4, 4, 4)),
    "hsdp-2x2": ("data=2,fsdp=2", ["--strategy=hsdp"], (2, 2, 2)),
    "groups-2x2": ("node=2,fsdp=2", ["--strategy=hsdp", "--batch-axes=node"], (2, 2, 2)),
    "all-axes-2x2": ("node=2,fsdp=2", ["--batch-axes=node", "--shard=*:flat(fsdp+node)"], (4, 4, 4)),
    "kept-part-2x2": ("node=2,fsdp=2", ["--batch-axes=node", "--shard=*:flat(fsdp+node)",
                                        "--reshard-after-forward=axes:fsdp"], (4, 4, 4)),
}


def shards(units, ranks):
    """Elements of the shards of all units: multiples of 16 where they are split."""
    return sum(size if ranks == 1 else -(-(-(-size // ranks)) // 16) * 16 for size in units)


def check_table(folder, goldens, units):
    model = ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.01", "--clip=0.5"]
    data = goldens / "data.safetensors"

    def run(name, mesh, options, compiler=None):
        program, report = folder / name, folder / f"{name}.json"
        if compiler:
            program, values = compiler("mlp", program, *model, *options, mesh=mesh), {}
        else:
            training.run([training.tool("mlp"), *model, f"--mesh={mesh}", *options, f"--report={report}", "-o", program])
            values = json.loads(report.read_text())
        extra = ["--communicator=loopback"] if compiler else []
        log, final = training.train(program, f"{name}-run", 20, goldens / "init.safetensors", data,
                                    "--val-data", data, "--eval-every", 10, *extra)
        if values and numbers(log, "peak_bytes")[-1] != values["arena"]:
            sys.exit(f"{name}: measured a peak of {numbers(log, 'peak_bytes')[-1]} bytes, expected {values['arena']}")
        return log, final, values

    def compare(name, got, expected, tolerance="2e-5"):
        training.compare_log(got[0], expected[0], f"--loss={tolerance}", f"--grad_norm={float(tolerance) * 10}",
                             "--accuracy=0.11" if float(tolerance) > 1e-4 else "--accuracy=0", "--steps=20")
        training.compare_weights(got[1], expected[1], f"--absolute={float(tolerance) * 5}")
        for a, b in zip(numbers(got[0], "val_loss"), numbers(expected[0], "val_loss")):
            if abs(a - b) > float(tolerance) * abs(b):
                sys.exit(f"{name}: got a validation loss of {a}, expected {b}")

    alone = run("alone", "fsdp=1", [])
    for name, (mesh, options, split) in training.chosen(TABLE, "ddp-4", "zero1-parts", "groups-2x2", "kept-part-2x2").items():
        got = run(name, mesh, options)
        compare(name, got, alone)
        bytes_ = [factor * shards(units, ranks) for factor, ranks in zip((F32, F32, 2 * F32), split)]
        said = [got[2][key] for key in ("parameters", "gradients", "optimizer")]
        if said != bytes_:
            sys.exit(f"{name}: the report says {said} bytes of parameters, gradients, optimizer; expected {bytes_}")

    # In bf16 the stored master is f32 and split, the copy is bf16 and whole; both are rounded as
    # fsdp's gathers are.
    reference = run("fsdp-bf16", "fsdp=2", ["--precision=bf16"])
    for strategy in training.chosen(("zero1", "zero2"), 1):
        got = run(f"{strategy}-bf16", "fsdp=2", ["--precision=bf16", f"--strategy={strategy}"])
        compare(f"{strategy}-bf16", got, reference, "2e-3")
        expected = F32 * shards(units, 2) + F32 // 2 * shards(units, 1)
        if got[2]["parameters"] != expected:
            sys.exit(f"{strategy}-bf16: the report says {got[2]['parameters']} bytes of parameters, expected {expected}")
        kinds = {(entry["kind"], entry["bytes"]) for entry in got[2]["collectives"] if entry["kind"] == "all_gather"}
        if sum(size for _, size in kinds) != F32 // 2 * shards(units, 1):
            sys.exit(f"{strategy}-bf16: gathers {sorted(kinds)}, expected all parameters once, in bf16")
    if training.WHOLE:
        compare("zero1-cuda", run("zero1-cuda", "fsdp=2", ["--strategy=zero1"], emulated.compile_model), alone)
        compare("zero2-cuda", run("zero2-cuda", "fsdp=2", ["--strategy=zero2", "--precision=bf16"], emulated.compile_model),
                reference, "2e-3")
    compare("part-cuda", run("part-cuda", *TABLE["kept-part-2x2"][:2], emulated.compile_model), alone)


def main(scratch):
    folder, goldens = pathlib.Path(scratch), training.GOLDEN / "mlp"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    model = ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.01", "--clip=0.5"]

    def run(name, options):
        program, report = folder / name, folder / f"{name}.json"
        mesh = [] if any(option.startswith("--mesh") for option in options) else ["--mesh=fsdp=2"]
        training.run([training.tool("mlp"), *model, *mesh, *options, f"--report={report}", "-o", program])
        log, final = training.train(program, f"{name}-run", STEPS, goldens / "init.safetensors",
                                    goldens / "data.safetensors")
        return log, final, json.loads(report.read_text())

    log, final, report = run("sharded", [])
    reports = {"sharded": report}
    for name, options in training.chosen(NEUTRAL, "prefetch-0", "bucket-of-each").items():
        other_log, other_final, reports[name] = run(name, options)
        training.compare_log(other_log, log, "--loss=0", "--grad_norm=0", "--accuracy=0")
        training.same_bytes(other_final, final)
    for name, options in training.chosen(EQUIVALENT, "replicated", "by-pattern", "hybrid").items():
        other_log, other_final, reports[name] = run(name, options)
        training.compare_log(other_log, log, "--loss=2e-6", "--grad_norm=2e-5", "--accuracy=0")
        training.compare_weights(other_final, final, "--absolute=1e-5")

    units = {}
    for name, (_, _, values) in safetensors.read(goldens / "init.safetensors").items():
        unit = name.split(".")[0]
        units[unit] = units.get(unit, 0) + F32 * len(values)
    check_table(folder, goldens, [size // F32 for size in units.values()])
    largest, second, _ = sorted(units.values(), reverse=True)
    padding = 2 * 64 * F32  # of two units, less than
    failures = []
    for name, most in (("prefetch-0", largest), ("sharded", largest + second), ("replicated", 0)):
        got = reports[name]["gathered"]
        print(f"{name}: {got} bytes gathered at once, expected at most {most} and padding")
        if got > most + (padding if most else 0):
            failures.append(name)
    kinds = {entry["kind"] for entry in reports["replicated"]["collectives"]}
    if kinds != {"all_reduce"}:
        failures.append(f"replicated: collectives {sorted(kinds)}, expected all_reduce")
    if failures:
        sys.exit(f"strategies: not as expected: {failures}")


if __name__ == "__main__":
    main(*sys.argv[1:])
