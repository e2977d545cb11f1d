"""Rung 3 as well: models whose attention cuDNN computes, beside the program's own kernels."""

import ctypes

from gpu.cases import program_of
from gpu.checking import compare, read_log
from gpu.ladder import Job
from gpu.timing import TRACED, describe, print_table
from trace_sums import Summary

LIBRARY = "libcudnn.so.9"
ALLOWED = 1e-2  # of losses in bf16, over some 30 steps: both round at other places


def missing(machine):
    """Why there is no cuDNN, or ''."""
    if machine.emulator:
        return ""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return f"{error}: pip install nvidia-cudnn-cu13, and its folder in LD_LIBRARY_PATH"
    return ""


def by_cudnn(machine, name, case, budget):
    """Losses are those of the own kernels, and the same in another process; times of both."""
    report, steps = machine.report, machine.steps(case)
    what, reason = f"{name}, attention by cuDNN", missing(machine)
    if reason:
        report.left_out(what, reason)
        return
    environment = {"FSDP_ATTENTION": "cudnn"}
    if machine.emulator:
        environment["LD_LIBRARY_PATH"] = str(machine.emulator / "test" / "emulator" / "cudnn")
    machine.build.quiet(budget)
    own = read_log(machine.folder / "logs" / f"{name}-1.jsonl") or machine.train(name, "1", steps, budget, most=150)
    log = machine.train(name, "1", steps, budget, "-cudnn", most=150, environment=environment)
    if not own or not log:
        return
    describe(what, case, log, machine.gpu, report)
    compare(report, what, "the own kernels", log, own[:len(log)], ALLOWED)
    report.figure(f"{what}, workspace", log[-1]["workspace"], f"{what}: workspace {log[-1]['workspace']:,} bytes, {own[-1]['workspace']:,} with the own kernels")
    again = machine.train(name, "1", min(steps, TRACED), budget, "-cudnn-again", True, most=150, environment=environment)
    if not again:
        return
    compare(report, what, "itself, traced", again, log[:len(again)], 0.0)
    trace = machine.folder / "logs" / f"{name}-1-cudnn-again.trace"
    print_table(Summary(trace, min(2, len(again) - 1)), machine.gpu, True, report)


def attention_jobs(machine, cases, after):
    return [Job(f"{name}, attention by cuDNN", lambda budget, name=name, case=case: by_cudnn(machine, name, case, budget), after,
                [program_of(name, "1")], 300)
            for name, case in cases.items() if case["rung"] == "timed" and "--precision=bf16" in case["options"]]
