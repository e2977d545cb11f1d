#!/usr/bin/env python3
"""check_strategies.py SCRATCH: how parameters are spread changes where they are, never what is computed.

Ten steps of `mlp` on the same weights and batches. What only moves things in time (prefetch, when a unit is
given up) leaves the same bits; other placements and meshes agree to 2e-6 in loss and 2e-5 in gradient norm.
The report says what each choice costs: without prefetch one unit is whole at once, with it two.
"""

import json
import pathlib
import sys

import training
import weights as safetensors

STEPS, F32 = 10, 4

NEUTRAL = {
    "prefetch-0": ["--prefetch=0"],
    "prefetch-2": ["--prefetch=2"],
    "kept-after-forward": ["--reshard-after-forward=never"],
    "shared-memory": ["--communicator=shm"],
}
EQUIVALENT = {
    "replicated": ["--strategy=ddp"],
    "small-ones-replicated": ["--min-shard-size=100"],
    "by-pattern": ["--shard=*.bias:replicated", "--shard=fc1.weight:1", "--shard=head.weight:flat"],
    "hybrid": ["--mesh=data=2,fsdp=2", "--strategy=hsdp"],
    "no-shards": ["--mesh=data=3"],
}


def main(scratch):
    folder, goldens = pathlib.Path(scratch), training.GOLDEN / "mlp"
    folder.mkdir(parents=True, exist_ok=True)
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
    for name, options in NEUTRAL.items():
        other_log, other_final, reports[name] = run(name, options)
        training.compare_log(other_log, log, "--loss=0", "--grad_norm=0", "--accuracy=0")
        training.same_bytes(other_final, final)
    for name, options in EQUIVALENT.items():
        other_log, other_final, reports[name] = run(name, options)
        training.compare_log(other_log, log, "--loss=2e-6", "--grad_norm=2e-5", "--accuracy=0")
        training.compare_weights(other_final, final, "--absolute=1e-5")

    units = {}
    for name, (_, _, values) in safetensors.read(goldens / "init.safetensors").items():
        unit = name.split(".")[0]
        units[unit] = units.get(unit, 0) + F32 * len(values)
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
