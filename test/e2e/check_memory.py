#!/usr/bin/env python3
"""check_memory.py SCRATCH RANKS: what a rank holds is its part, and the report is what happens.

Of `mlp` with adamw: parameters, gradients and optimizer state are the replicated totals divided
by RANKS plus padding below 64 elements a unit; the parameters gathered at once are at most the
two largest units; the arena of the report is the measured high-water mark of the run. On one rank also of a model whose evaluation
is the fuller step.
"""

import json
import os
import pathlib
import sys

import training
import weights
from check_refusals import write

F32 = 4
PADDING = 64  # elements a unit, less than


def check_fuller_evaluation(folder):
    """Of a model whose evaluation needs more than its training step (the weights of its sums): the peak is the arena in a run that
    evaluates, and below it in one that does not."""
    report_path = folder / "report.json"
    program = training.compile_model("linear", folder, "--in=1", "--out=1", "--batch=8", f"--report={report_path}", ranks=2)
    arena = json.loads(report_path.read_text())["arena"]
    column = ("F32", [8, 1], [0.5] * 8)
    data = write(folder / "data.safetensors", {"x": column, "y": column})
    init = write(folder / "init.safetensors", {"kernel": ("F32", [1, 1], [0.25]), "bias": ("F32", [1], [0.0])})
    peaks = {}
    for name, options in ("without", []), ("with", ["--val-data", data, "--eval-every", 1]):
        log, _ = training.train(program, name, 2, init, data, *options)
        peaks[name] = max(json.loads(line)["peak_bytes"] for line in log.read_text().splitlines())
    print(f"arena: got {arena} bytes in the report, measured {peaks['with']} with evaluation, {peaks['without']} without")
    return peaks["with"] == arena and peaks["without"] < arena


def main(scratch, ranks_text):
    ranks, goldens = int(ranks_text), training.GOLDEN / "mlp"
    folder = pathlib.Path(scratch)
    os.environ.update(training.unoptimized())
    report_path = folder / "report.json"
    golden = json.loads((goldens / "adamw.json").read_text())
    program = training.compile_model(
        "mlp", folder, f"--in={golden['in']}", f"--hidden={golden['hidden']}",
        f"--classes={golden['classes']}", f"--batch={golden['batch']}", *golden["options"],
        f"--report={report_path}", ranks=ranks)
    report = json.loads(report_path.read_text())
    log, _ = training.train(program, "run", 3, goldens / "init.safetensors", goldens / "data.safetensors")

    units = {}
    for name, (_, _, values) in weights.read(goldens / "init.safetensors").items():
        unit = name.split(".")[0]
        units[unit] = units.get(unit, 0) + len(values)
    total, padding = sum(units.values()), PADDING * len(units)
    failures = []
    for kind, copies in (("parameters", 1), ("gradients", 1), ("optimizer", 2)):
        least = copies * F32 * total / ranks
        most = copies * F32 * (total / ranks + padding)
        print(f"{kind}: got {report[kind]} bytes, expected {least:.0f} to {most:.0f}")
        if not least <= report[kind] < most:
            failures.append(kind)
    # Padding of a gathered unit: below 64 elements a rank.
    largest = sum(sorted(units.values())[-2:])
    most = F32 * (largest + 2 * PADDING * ranks)
    print(f"gathered: got {report['gathered']} bytes, expected at most {most}")
    if report["gathered"] > most:
        failures.append("gathered")
    measured = max(json.loads(line)["peak_bytes"] for line in log.read_text().splitlines())
    print(f"arena: got {report['arena']} bytes in the report, measured {measured}")
    if report["arena"] != measured:
        failures.append("arena")
    if ranks == 1 and not check_fuller_evaluation(folder / "evaluation"):
        failures.append("arena with evaluation")
    if failures:
        sys.exit(f"memory: not as expected: {', '.join(failures)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
