"""Rung 4: every kernel and every product at the shapes of real models, beside its floor."""

import json
import math

from gpu.cases import BENCHES
from gpu.ladder import Job
from gpu.report import run, said
from gpu.timing import floor_of

CACHED = 50 << 20  # bytes: what fits into the second-level cache may be faster than memory
IMPOSSIBLE = 1.05  # of the floor's rate: faster is a mistake of the measurement


def parse(text):
    """The measurements of a run's output, and the lines that are none."""
    rows, other = [], []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            other.append(line)
    return rows, "\n".join(other)


def show(row, gpu, report):
    """A line of the table. Returns what is wrong with it, as (what, got, expected), or None."""
    what = f"{row['name']} {row['type']} {row['shape']}"
    if "ms" not in row:
        report(f"        {what[:62]:62} {row.get('error', 'no result')}")
        return what, row.get("error", "no result"), "a time"
    if not (math.isfinite(row["ms"]) and row["ms"] > 0):
        report(f"        {what[:62]:62} {row['ms']}")
        return f"{what}: ms of a launch", row["ms"], "more than 0"
    seconds = row["ms"] * 1e-3
    text = f"        {what[:62]:62} {row['ms']:9.4f}"
    # Products of bf16 use tensor cores; products of f32 do not.
    floor = floor_of(row["flops"], row["bytes"], gpu, row["type"] == "bf16")
    if not (row["flops"] or row["bytes"]) or not floor:
        report(text)
        return None
    report(f"{text} {floor[0] * 1e3:9.4f} {100 * floor[0] / seconds:6.0f} % {floor[1]:5} "
           f"{row['flops'] / seconds / 1e12:8.1f} {row['bytes'] / seconds / 1e9:8.0f}")
    if seconds * IMPOSSIBLE < floor[0] and (floor[1] == "flops" or row["bytes"] > CACHED):
        return f"{what}: ms of a launch", f"{row['ms']:.4f}", f"at least its floor of {floor[0] * 1e3:.4f}"
    return None


def bench(machine, group, model, budget):
    report = machine.report
    machine.build.quiet(budget)
    status, text = run([machine.build.path("device-bench"), group, model, *(["--tiny"] if machine.emulator else [])], 150, budget)
    report.details(f"device-bench {group} {model}", text)
    rows, other = parse(text)
    report(f"        {f'{group} of {model}':62} {'ms':>9} {'floor':>9} {'%':>8} {'bound':5} {'TFLOP/s':>8} {'GB/s':>8}")
    wrong = [found for found in (show(row, machine.gpu, report) for row in rows) if found]
    for what, got, expected in wrong:
        report.fail(f"{group} of {model}: {what}", got, expected)
    if status and not wrong:
        report.fail(f"{group} of {model}: device-bench after {len(rows)} measurements", f"status {status}", "status 0", said(other))
    if rows and not wrong and status == 0:
        report.ok(f"{group} of {model}: {len(rows)} measured")
    for row in rows:
        if "ms" in row and row["name"] in ("attention", "attention_grad"):
            report.figure(f"{row['name']} {model}", row["ms"], "")


def bench_jobs(machine, after):
    return [Job(f"{group} of {model}", lambda budget, group=group, model=model: bench(machine, group, model, budget), after,
                ["device-bench"]) for group, model in BENCHES]
