"""Times programs, one after another, and says by kind of work where a step goes."""

import re
import shutil

from gpu.cases import peaks_of
from gpu.checking import check_case, train
from gpu.report import Budget
from trace_sums import Summary

WARM_UP, TRACED = 5, 8
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def number(options, name):
    return next(int(o.split("=")[1]) for o in options if o.startswith(f"--{name}="))


def rates(row):
    """TFLOP/s and GB/s of a row, as columns; nothing where they are not known."""
    seconds = max(row.processor * 1e-6, 1e-12)
    flops = f"{row.flops / seconds / 1e12:9.1f}" if row.flops else " " * 9
    moved = f"{row.bytes / seconds / 1e9:8.0f}" if row.bytes else " " * 8
    return f"{flops} {moved}"


def print_table(summary, gpu, report):
    """A row is a kind of work on a stream, of a step of a rank; its share is of the step's time."""
    whole = summary.milliseconds
    report(f"        traced: {whole:.3f} ms a step, of which the host enqueues for {summary.enqueue:.3f}")
    if peaks_of(gpu):
        report("        peaks: {} TFLOP/s f32, {} bf16, {} GB/s".format(*peaks_of(gpu)))
    report(f"        {'stream':8} {'kind':20} {'calls':>6} {'ms':>9} {'%':>6} {'TFLOP/s':>9} {'GB/s':>8}")
    for stream, rows in summary.tables.items():
        if stream == "host":
            continue
        worked = 0.0
        for kind, row in sorted(rows.items(), key=lambda item: -item[1].wall):
            milliseconds = row.wall / summary.count / 1e3
            worked += row.processor / summary.count / 1e3
            report(f"        {stream:8} {kind:20} {row.calls / summary.count:6.0f} {milliseconds:9.3f} "
                   f"{100 * milliseconds / whole:6.1f} {rates(row)}")
        report(f"        {stream:8} {'all but waiting':20} {'':6} {worked:9.3f} {100 * worked / whole:6.1f}")


def print_longest(path, skip, report, most=20):
    """The launches that take longest, those of all layers together."""
    layered = Summary(path, skip, lambda event: f"{event['cat']:16} " + re.sub(r"[.]\d+[.]", ".#.", event["name"]))
    rows = [(row, stream, key) for stream, rows in layered.tables.items() if stream != "host" for key, row in rows.items()
            if row.processor]
    report(f"        {'longest':8} {'kind':16} {'name':56} {'calls':>6} {'ms':>9} {'TFLOP/s':>9} {'GB/s':>8}")
    for row, stream, key in sorted(rows, key=lambda found: -found[0].processor)[:most]:
        report(f"        {stream:8} {key[:73]:73} {row.calls / layered.count:6.0f} "
               f"{row.processor / layered.count / 1e3:9.3f} {rates(row)}")


def describe(name, case, log, gpu, report):
    milliseconds = sorted(line["step_ms"] for line in log[min(WARM_UP, len(log) - 1):])
    median = milliseconds[len(milliseconds) // 2]
    text = f"{name}: {median:.2f} ms a step (median of {len(milliseconds)}, least {milliseconds[0]:.2f})"
    options = case["options"]
    if case["model"] != "gpt2":
        report(text)
        return
    layers, width, context, batch, vocabulary = (number(options, key) for key in
                                                 ("layers", "width", "context", "batch", "vocab"))
    # Forward and backward of every product, the unembedding's too, and attention's, causal or not (PaLM, appendix B).
    flops = 6 * (12 * layers * width * width + vocabulary * width) + 12 * layers * width * context
    rate = batch * context / median * 1e3
    bf16 = "--precision=bf16" in options
    mfu = f"unknown: no peak is known for '{gpu}'"
    if peaks_of(gpu):
        peak = peaks_of(gpu)[bf16]
        mfu = f"{100 * rate * flops / (peak * 1e12):.1f} % of {peak} TFLOP/s {'bf16' if bf16 else 'f32'}"
    report(f"{text}, {rate:.0f} tokens/s, {rate * flops / 1e12:.1f} TFLOP/s, MFU {mfu}")


def time_case(build, folder, name, case, gpu, most_steps, budget, report):
    """On one rank, with the GPU to itself: once as it is, once traced."""
    part = Budget(75, budget)
    steps = min(case["steps"], most_steps)
    log = train(build, folder, name, "1", steps, part, report)
    if not log:
        return
    describe(name, case, log, gpu, report)
    again = train(build, folder, name, "1", min(steps, TRACED), part, report, "-again", True)
    if case["timed"]:
        # No schedule of rates knows how many steps there are: shorter runs are the beginning of longer ones.
        check_case(name, case, {"1": [log, again]}, folder, report)
    if again:
        trace = folder / "logs" / f"{name}-1-again.trace"
        skip = min(2, len(again) - 1)
        print_table(Summary(trace, skip), gpu, report)
        print_longest(trace, skip, report)
        if report.folder:
            shutil.copy(trace, report.folder / f"{name}.trace.json")


def note_loopback(folder, cases, report):
    """What collectives reach where ranks share a GPU: copies within its memory, waiting for peers included."""
    for name, case in cases.items():
        for mesh in case["meshes"]:
            trace = folder / "logs" / f"{name}-{mesh}-again.trace"
            if mesh == "1" or not trace.exists() or "124m" not in name:
                continue
            for rows in Summary(trace, skip=1).tables.values():
                for kind, row in rows.items():
                    if kind in COLLECTIVES:
                        report(f"note: {name} on {mesh} ranks of one GPU: {kind} {row.bytes / max(row.wall, 1e-6) / 1e3:.0f} GB/s, "
                               "waiting for each other included; says nothing about NVLink")
