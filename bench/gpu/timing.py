"""Rung 3: times programs, one after another, and says by kind of work where a step goes."""

import re
import shutil

from gpu.cases import flops_of_token, number, peaks_of, program_of
from gpu.checking import check_course, check_memory, compare
from gpu.ladder import Job
from trace_sums import Summary

WARM_UP, TRACED = 5, 8


def floor_of(flops, moved, gpu, bf16):
    """(seconds that the work takes at least, what bounds it), or None where the GPU's peaks are not known."""
    peaks = peaks_of(gpu)
    if not peaks:
        return None
    compute, memory = flops / (peaks[1 if bf16 else 0] * 1e12), moved / (peaks[2] * 1e9)
    return max(compute, memory), "flops" if compute > memory else "bytes"


def rates(row):
    """TFLOP/s and GB/s of a row, as columns; nothing where they are not known."""
    seconds = max(row.processor * 1e-6, 1e-12)
    flops = f"{row.flops / seconds / 1e12:9.1f}" if row.flops else " " * 9
    moved = f"{row.bytes / seconds / 1e9:8.0f}" if row.bytes else " " * 8
    return f"{flops} {moved}"


def share_of_floor(row, gpu, bf16):
    """How much of a row's time its floor is, as a column."""
    floor = floor_of(row.flops, row.bytes, gpu, bf16)
    return f"{100 * floor[0] / max(row.processor * 1e-6, 1e-12):7.0f}" if floor and row.processor else " " * 7


def print_table(summary, gpu, bf16, report):
    """A row is a kind of work on a stream, of a step of a rank; its share is of the step's time."""
    whole = summary.milliseconds
    report(f"        traced: {whole:.3f} ms a step, of which the host enqueues for {summary.enqueue:.3f}")
    if peaks_of(gpu):
        report("        peaks: {} TFLOP/s f32, {} bf16, {} GB/s".format(*peaks_of(gpu)))
    report(f"        {'stream':8} {'kind':20} {'calls':>6} {'ms':>9} {'%':>6} {'TFLOP/s':>9} {'GB/s':>8} {'floor %':>7}")
    for stream, rows in summary.tables.items():
        if stream == "host":
            continue
        worked = 0.0
        for kind, row in sorted(rows.items(), key=lambda item: -item[1].wall):
            milliseconds = row.wall / summary.count / 1e3
            worked += row.processor / summary.count / 1e3
            report(f"        {stream:8} {kind:20} {row.calls / summary.count:6.0f} {milliseconds:9.3f} "
                   f"{100 * milliseconds / whole:6.1f} {rates(row)} {share_of_floor(row, gpu, bf16)}")
        report(f"        {stream:8} {'all but waiting':20} {'':6} {worked:9.3f} {100 * worked / whole:6.1f}")


def print_longest(path, skip, gpu, bf16, report, most=20):
    """The launches that take longest, those of all layers together, with the variant of the kernel in the name."""
    layered = Summary(path, skip, lambda event: f"{event['cat']:16} " + re.sub(r"[.]\d+[.]", ".#.", event["name"]))
    rows = [(row, stream, key) for stream, rows in layered.tables.items() if stream != "host" for key, row in rows.items()
            if row.processor]
    report(f"        {'longest':8} {'kind':16} {'name':56} {'calls':>6} {'ms':>9} {'TFLOP/s':>9} {'GB/s':>8} {'floor %':>7}")
    for row, stream, key in sorted(rows, key=lambda found: -found[0].processor)[:most]:
        report(f"        {stream:8} {key[:73]:73} {row.calls / layered.count:6.0f} "
               f"{row.processor / layered.count / 1e3:9.3f} {rates(row)} {share_of_floor(row, gpu, bf16)}")


def describe(name, case, log, gpu, report):
    milliseconds = sorted(line["step_ms"] for line in log[min(WARM_UP, len(log) - 1):])
    median = milliseconds[len(milliseconds) // 2]
    text = f"{name}: {median:.2f} ms a step (median of {len(milliseconds)}, least {milliseconds[0]:.2f})"
    options = case["options"]
    batch, context, flops = number(options, "batch"), number(options, "context"), flops_of_token(options)
    rate = batch * context / median * 1e3
    bf16 = "--precision=bf16" in options
    mfu = f"unknown: no peak is known for '{gpu}'"
    if peaks_of(gpu):
        peak = peaks_of(gpu)[bf16]
        mfu = f"{100 * rate * flops / (peak * 1e12):.1f} % of {peak} TFLOP/s {'bf16' if bf16 else 'f32'}"
    text = f"{text}, {rate:.0f} tokens/s, {rate * flops / 1e12:.1f} TFLOP/s, MFU {mfu}"
    report(f"        {text}")
    report.figure(name, median, text)


def time_case(machine, name, case, budget):
    """On one rank, with the GPU to itself: once as it is, once traced; its losses fall and are the same twice."""
    report, steps = machine.report, machine.steps(case)
    machine.build.quiet(budget)
    log = machine.train(name, "1", steps, budget, most=150)
    if not log:
        return
    describe(name, case, log, machine.gpu, report)
    check_memory(report, name, case, log)
    check_course(report, name, case, log)
    # The learning rate does not depend on the number of steps, so shorter runs are prefixes of
    # longer ones.
    again = machine.train(name, "1", min(steps, TRACED), budget, "-again", True, most=150)
    if not again:
        return
    compare(report, name, "itself, traced", again, log[:len(again)], 0.0)
    trace = machine.folder / "logs" / f"{name}-1-again.trace"
    skip = min(2, len(again) - 1)
    bf16 = "--precision=bf16" in case["options"]
    print_table(Summary(trace, skip), machine.gpu, bf16, report)
    print_longest(trace, skip, machine.gpu, bf16, report)
    if report.folder:
        shutil.copy(trace, report.folder / f"{name}.trace.json")


def timed_jobs(machine, cases, after):
    return [Job(f"{name} on one rank", lambda budget, name=name, case=case: time_case(machine, name, case, budget), after,
                [program_of(name, "1")], 300) for name, case in cases.items() if case["rung"] == "timed"]
