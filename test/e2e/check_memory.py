#!/usr/bin/env python3
"""check_memory.py SCRATCH RANKS: what a rank holds is its part, and the report is what happens.

Of `mlp` with adamw: parameters, gradients and optimizer state are the replicated totals divided
by RANKS plus padding below 64 elements a unit; the parameters gathered at once are at most the
two largest units; the arena of the report is the measured high-water mark of the run.
"""

import json
import pathlib
import sys

import training
import weights

F32 = 4
PADDING = 64  # elements a unit, less than


def main(scratch, ranks_text):
    ranks, goldens = int(ranks_text), training.GOLDEN / "mlp"
    folder = pathlib.Path(scratch)
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
    if failures:
        sys.exit(f"memory: not as expected: {', '.join(failures)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
