"""Rung 3 as well: steps as CUDA graphs, products by measured algorithms, and ranges for profilers."""

import json
import os
import pathlib
import re
import shutil

from gpu.cases import program_of
from gpu.checking import compare
from gpu.ladder import Job
from gpu.report import last, run, said
from gpu.same_bits import digest
from gpu.timing import describe

GRAPHS = ("gpt2-124m-bf16", "gpt2-124m-f32", "llama-1b-bf16")
TUNED = RANGES = "gpt2-124m-bf16"
ALLOWED = 1e-2  # of losses in bf16: algorithms differ in the order of sums
STEPS_IN_RANGES = 3
RANGE = re.compile(r"(?:(\d+) )?(push (.*)|pop)")


def train(machine, name, tag, steps, budget, environment=None):
    """(log, digest of the exported weights), or None."""
    weights = machine.folder / "logs" / f"{name}-1{tag}.safetensors"
    log = machine.train(name, "1", steps, budget, tag, options=["--export", weights], most=150, environment=environment)
    if not log:
        return None
    found = log, digest(weights)
    weights.unlink()
    return found


def same(report, what, got, expected):
    """Whether losses, norms and weights are the same to the bit."""
    numbers = [[(line["loss"], line.get("grad_norm")) for line in log] for log, _ in (got, expected)]
    step = next((n for n, pair in enumerate(zip(*numbers), 1) if pair[0] != pair[1]), None)
    if step:
        report.fail(f"{what}: loss and norm of step {step}", numbers[0][step - 1], numbers[1][step - 1])
    elif got[1] != expected[1]:
        report.fail(f"{what}: SHA-256 of the weights", got[1], expected[1])
    else:
        report.ok(f"{what}: the same {len(got[0])} losses and weights ({got[1]})")


def by_graphs(machine, name, case, budget):
    """The same bits with graphs as without, and the time of both. The first steps are not launched as graphs."""
    machine.build.quiet(budget)
    steps = machine.steps(case)
    streams = train(machine, name, "-streams", steps, budget)
    graphs = streams and train(machine, name, "-graphs", steps, budget, {"FSDP_GRAPH": "1"})
    if not graphs:
        return
    describe(f"{name}, call by call", case, streams[0], machine.gpu, machine.report)
    describe(f"{name}, as graphs", case, graphs[0], machine.gpu, machine.report)
    same(machine.report, f"{name}, as graphs", graphs, streams)


def tuned(machine, name, case, budget):
    """Measured algorithms: losses beside those of the first ones, and the same bits from the choices that are kept."""
    machine.build.quiet(budget)
    report, steps, kept = machine.report, machine.steps(case), machine.folder / "logs" / "products"
    shutil.rmtree(kept, ignore_errors=True)
    environment = {"FSDP_TUNE": "1", "FSDP_TUNE_CACHE": str(kept)}
    first = train(machine, name, "-first", steps, budget)
    chosen = first and train(machine, name, "-tuned", steps, budget, environment)
    if not chosen:
        return
    describe(f"{name}, first algorithms", case, first[0], machine.gpu, report)
    describe(f"{name}, measured algorithms", case, chosen[0], machine.gpu, report)
    compare(report, f"{name}, measured algorithms", "the first ones", chosen[0], first[0], ALLOWED)
    choices = len(list(kept.glob("*"))) if kept.is_dir() else 0
    if not choices:
        report.fail(f"{name}, measured algorithms: choices in FSDP_TUNE_CACHE", 0, "one for each product")
        return
    again = train(machine, name, "-kept", steps, budget, environment)
    if again:
        same(report, f"{name}, {choices} choices that were kept", again, chosen)


def library(machine, includes, budget):
    """(what NVTX_INJECTION64_PATH is, the file that ranges are written to), or None after saying why not. The emulator's NVTX writes them by itself."""
    ranges = machine.folder / "logs" / "ranges"
    ranges.unlink(missing_ok=True)
    if machine.emulator:
        return ranges, ranges
    made = machine.folder / "logs" / "ranges.so"
    status, text = run([os.environ.get("CXX", "c++"), "-std=c++17", "-shared", "-fPIC", *(f"-I{path}" for path in includes),
                        pathlib.Path(__file__).resolve().parent / "Ranges.cpp", "-o", made], 120, budget)
    if status:
        machine.report.details("Ranges.cpp", text)
        machine.report.left_out("ranges for profilers", f"nvtx3/nvToolsExt.h does not compile: {last(text)}\n{said(text)}")
        return None
    return made, ranges


def read_ranges(path):
    """([names from the outermost range inwards] of each range, what is wrong with their order or '')."""
    opened, found = {}, []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        match = RANGE.fullmatch(line)
        if not match:
            return found, f"'{line}'"
        within = opened.setdefault(match.group(1), [])
        if match.group(2) != "pop":
            within.append(match.group(3))
            found.append(list(within))
        elif within:
            within.pop()
        else:
            return found, "an end of no range"
    left = [names for names in opened.values() if names]
    return found, f"no end of {left[0]}" if left else ""


def actions_of(trace):
    """The names of what streams do, without the variant of a kernel behind them."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    hosts = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name" and event["args"]["name"] == "host"}
    return {event["name"].partition(" (")[0] for event in events
            if event["ph"] == "X" and event["cat"] != "wait" and (event["pid"], event["tid"]) not in hosts}


def in_ranges(machine, name, includes, budget):
    """A range for each step, in it those of segments and of the actions of a trace; the numbers are those without ranges."""
    report, steps = machine.report, min(STEPS_IN_RANGES, machine.most_steps)
    made = library(machine, includes, budget)
    if not made:
        return
    log = machine.train(name, "1", steps, budget, "-named", environment={"NVTX_INJECTION64_PATH": str(made[0])}, most=150)
    traced = log and machine.train(name, "1", steps, budget, "-unnamed", True, most=150)
    if not traced:
        return
    compare(report, f"{name}, in ranges", "a run without", log, traced, 0.0)
    found, wrong = read_ranges(made[1])
    actions = actions_of(json.loads((machine.folder / "logs" / f"{name}-1-unnamed.trace").read_text()))
    inner = {names[-1] for names in found if len(names) > 2}
    missing = sorted({f"step {step}" for step in range(1, steps + 1)} - {names[0] for names in found}) or sorted(actions - inner)
    what = f"{name}: ranges for profilers"
    if wrong:
        report.fail(what, wrong, "ranges that end in the order of their beginnings")
    elif missing or not actions:
        report.fail(what, f"none for {len(missing)} names, the first '{(missing or [''])[0]}'", "those of steps and of the trace's actions")
    else:
        report.ok(f"{what}: {len(found)} ranges of {steps} steps, with the names of {len(actions)} actions of the trace")


def mode_jobs(machine, cases, includes, after):
    jobs = []
    for kind, perform, names in (("as graphs", by_graphs, GRAPHS), ("measured algorithms", tuned, (TUNED,))):
        jobs += [Job(f"{name}, {kind}", lambda budget, name=name, perform=perform: perform(machine, name, cases[name], budget), after,
                     [program_of(name, "1")], 300) for name in names if name in cases]
    if RANGES in cases:
        jobs.append(Job(f"{RANGES}, ranges for profilers", lambda budget: in_ranges(machine, RANGES, includes, budget), after,
                        [program_of(RANGES, "1")], 200))
    return jobs
