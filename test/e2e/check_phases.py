#!/usr/bin/env python3
"""check_phases.py SCRATCH: all phases, and the program, compute what one imaginary device computes.

For each model and mesh `fsdp-run` takes three steps of the global, the local and the scheduled IR in
double precision; they agree to 1e-9 in parameters, optimizer state and outputs. The compiled program
agrees with them to 1e-5 in the parameters.
"""

import os
import pathlib
import sys

import check_branches
import training
import weights as safetensors

STEPS, SEED = 3, 5


def outputs_of(folder, phase, model, inputs, weights, options):
    """Runs `phase` of the model; returns name -> values, parameters and outputs alike."""
    text, result = folder / f"{phase}.mlir", folder / f"{phase}.safetensors"
    training.run([training.tool(model), *options, f"--emit={phase}", "-o", text])
    training.run([training.tool("fsdp-run"), text, "--params", weights, "--inputs", inputs,
                  "--outputs", result, f"--steps={STEPS}", "--numerics=exact", f"--seed={SEED}"])
    return {name: values for name, (_, _, values) in safetensors.read(result).items()}


def agree(title, got, expected, tolerance):
    missing = sorted(set(expected) - set(got))
    if missing:
        sys.exit(f"phases: {title}: has no {missing}, only {sorted(got)}")
    worst = 0.0
    for name, values in expected.items():
        for a, b in zip(got[name], values):
            difference = abs(a - b) / max(1.0, abs(b))
            if not difference <= tolerance or len(got[name]) != len(values):
                sys.exit(f"phases: {title}: '{name}': got {a!r}, expected {b!r} to {tolerance:g}")
            worst = max(worst, difference)
    print(f"phases: {title}: {len(expected)} tensors agree to {worst:.2g}")


def check(folder, model, inputs, weights, options):
    folder.mkdir(parents=True, exist_ok=True)
    whole = outputs_of(folder, "global", model, inputs, weights, options)
    for phase in ("local", "scheduled"):
        agree(f"{folder.name}: {phase}", outputs_of(folder, phase, model, inputs, weights, options), whole, 1e-9)
    program, final = folder / "train", folder / "final.safetensors"
    training.run([training.tool(model), *options, "-o", program])
    training.run([program, "--data", inputs, "--init", weights, "--steps", STEPS, "--export", final,
                  "--seed", SEED])
    parameters = {name: values for name, (_, _, values) in safetensors.read(final).items()}
    agree(f"{folder.name}: program", parameters, {name: whole[name] for name in parameters}, 1e-5)


def main(scratch):
    os.environ.update(training.unoptimized_in_each_check())
    folder, golden = pathlib.Path(scratch), training.GOLDEN
    linear = golden / "linear" / "10-5-3"
    for name, mesh in (("linear-3", "fsdp=3"), ("linear-2x2", "data=2,fsdp=2")):
        check(folder / name, "linear", f"{linear}.data.safetensors", f"{linear}.init.safetensors",
              ["--in=5", "--out=3", "--batch=10", "--optimizer=sgd", "--lr=0.1", f"--mesh={mesh}"])
    mlp = ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.01"]
    for name, options in (("mlp-adamw", ["--mesh=fsdp=4", "--clip=0.5"]),
                          ("mlp-adam-by-pattern", ["--mesh=fsdp=3", "--optimizer=adam", "--shard=fc1.*:0",
                                                   "--shard=fc2.bias:replicated", "--shard=head.bias:replicated",
                                                   "--prefetch=0"]),
                          ("mlp-ddp", ["--mesh=data=3", "--strategy=ddp", "--optimizer=sgd", "--momentum=0.9"])):
        check(folder / name, "mlp", golden / "mlp" / "data.safetensors", golden / "mlp" / "init.safetensors",
              [*mlp, *options])
    data = check_branches.dataset(folder)
    weights = check_branches.initial(folder)
    check(folder / "branches", "branches", data, weights, ["--mesh=fsdp=3", "--batch=10", "--lr=0.05"])


if __name__ == "__main__":
    main(*sys.argv[1:])
