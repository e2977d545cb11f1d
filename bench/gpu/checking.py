"""Runs programs and compares their losses: rung 2, and what later rungs share."""

import concurrent.futures
import json
import math
import re
import time

from gpu.cases import SAME, between_meshes, data_of, number, program_of
from gpu.ladder import Job
from gpu.report import cause, run, said

AT_ONCE = 3  # small programs: most of their time is starting
STEPS_TO_FALL = 4  # fewer, of small batches that differ, need not lower the loss


def read_log(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def worst(log, expected):
    """Largest relative difference of losses; infinite where steps are missing or no number."""
    if len(log) != len(expected) or not log:
        return float("inf")
    differences = [abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(log, expected)]
    return max(differences) if all(d == d for d in differences) else float("inf")


def where(log, expected):
    """The step at which losses differ most, for the text of a failure."""
    pairs = [(abs(a["loss"] - b["loss"]) / abs(b["loss"]), n, a["loss"], b["loss"])
             for n, (a, b) in enumerate(zip(log, expected), 1)]
    if len(log) != len(expected) or not pairs:
        return f"{len(log)} steps", f"{len(expected)} steps"
    _, step, got, wanted = max(pairs)
    return f"loss {got:.7g} at step {step}", f"{wanted:.7g}"


def compare(report, what, other, log, expected, allowed):
    difference = worst(log, expected)
    text = f"{what}: losses within {difference:.2g} of {other} (allowed {allowed:g})"
    if difference <= allowed:
        report.ok(text)
    else:
        report.fail(text, *where(log, expected))


class Machine:
    """Where programs are, and what they run with."""

    def __init__(self, folder, build, gpu, most_steps, emulator, report):
        self.folder, self.build, self.gpu, self.most_steps, self.emulator = folder, build, gpu, most_steps, emulator
        self.report, self.begin = report, time.monotonic()

    def steps(self, case):
        return min(case["steps"], self.most_steps)

    def train(self, name, mesh, steps, budget, tag="", trace=False, most=90, options=(), environment=None,
              logged=None):
        """The log of a run, or [] after saying why there is none. `logged`: the steps that the log has, all by default."""
        scratch = self.folder / "logs"
        stem = f"{name}-{mesh}{tag}"
        words = [*options, *(["--communicator=loopback"] if mesh != "1" else [])]
        if trace:
            words += ["--trace", scratch / f"{stem}.trace"]
        what = f"{name} on {mesh} ranks{', traced' if trace else ''}"
        status, text = run([self.build.path(program_of(name, mesh)), "--data", self.folder / data_of(name), "--steps", steps,
                            "--log", scratch / f"{stem}.jsonl", *words], most, budget, environment)
        self.report.details(what, text)
        if status:
            self.report.fail(f"{what}: the program", f"status {status}, '{cause(text)}'", "status 0", said(text))
            return []
        log = read_log(scratch / f"{stem}.jsonl")
        expected = int(steps) if logged is None else logged
        if len(log) != expected:
            self.report.fail(f"{what}: the log", f"{len(log)} steps", expected)
            return []
        return log


def run_tests(machine, what, program, options, seconds, budget):
    """Runs a program of GoogleTest and says which tests failed."""
    status, text = run([machine.build.path(program), *options], seconds, budget)
    machine.report.details(what, text)
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    if status == 0 and passed and passed.group(1) != "0":
        machine.report.ok(f"{what}: {passed.group(1)} tests agree with their references")
        return
    failed = list(dict.fromkeys(re.findall(r"\[  FAILED  \] ([\w/]+\.[\w/]+)", text)))[:20]
    lines = [line for line in text.splitlines() if not re.match(r"\[ +(OK|RUN) ", line)]
    machine.report.fail(f"{what}: status {status}, failed tests {', '.join(failed) or 'unknown'}",
                        f"{passed.group(1) if passed else 0} tests passed", "all of at least one", said("\n".join(lines[:40]), 40))


def check_case(machine, name, case, budget):
    """Losses on every mesh, twice: against the CPU's, against those of one rank, traced."""
    report, one = machine.report, []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {mesh: [pool.submit(machine.train, name, mesh, machine.steps(case), budget, tag, bool(tag), options=case["run"])
                       for tag in ("", "-again")]
                for mesh in case["meshes"]}
        logs = {mesh: [one.result() for one in pair] for mesh, pair in runs.items()}
    for mesh, (log, again) in logs.items():
        if not log:
            continue
        what = f"{name} on {mesh} ranks"
        if case["tolerance"] is not None:
            cpu = read_log(machine.folder / "cases" / name / "cpu.jsonl")[:len(log)]
            compare(report, what, "the CPU", log, cpu, case["tolerance"])
        if mesh == "1":
            one = log
        elif one:
            compare(report, what, "1 rank", log, one, between_meshes(case["options"]))
        if again:
            compare(report, what, "itself, traced", again, log, 0.0)


def loss_jobs(machine, cases, tests, after):
    """Rung 2: every test of kernels and products, then small models against the CPU."""
    jobs = []
    for program in tests:
        # Under the emulator every check runs these as unit tests, so only a few of them here.
        what = f"some tests of {program}" if machine.emulator else "all tests of kernels and products"
        options = ["--gtest_brief=1", *(["--gtest_filter=Variant*:*PreparesAProductOnce"] if machine.emulator else [])]
        jobs.append(Job(what, lambda budget, program=program, what=what, options=options: run_tests(machine, what, program, options, 120,
                                                                                                     budget), after, [program]))
    for name, case in cases.items():
        if case["rung"] == "losses":
            jobs.append(Job(f"losses of {name}", lambda budget, name=name, case=case: check_case(machine, name, case, budget), after,
                            [program_of(name, mesh) for mesh in case["meshes"]]))
    return jobs


def large_jobs(machine, cases, after):
    """Rung 5: a model whose logits take more than 31 bits to number, against itself with a part of its logits at a time."""
    jobs = []
    for name, other in SAME.items():
        if name not in cases or other not in cases:
            continue

        def perform(budget, name=name, other=other):
            report, case = machine.report, cases[name]
            report(f"        {name}: {case['logits']:,} logits of a step, 2^31 is {1 << 31:,}; {other} has a part of them at a time")
            logs = [machine.train(each, "1", machine.steps(case), budget, most=200) for each in (name, other)]
            if not all(logs):
                return
            compare(report, name, other, *logs, between_meshes(case["options"]))
            check_course(report, name, case, logs[0])
            check_memory(report, name, case, logs[0])
        jobs.append(Job(f"{name} against {other}", perform, after, [program_of(name, "1"), program_of(other, "1")], 480))
    return jobs


def check_course(report, name, case, log):
    """Losses that no other program has: the first is that of an even guess, and they fall."""
    first, final, guess = log[0]["loss"], log[-1]["loss"], math.log(number(case["options"], "vocab"))
    what, expected = f"{name}: the first loss", f"{guess:.4g} within 5 %, the logarithm of the vocabulary"
    if abs(first - guess) <= 0.05 * guess:
        report.ok(f"{what} is {first:.6g}, expected {expected}")
    else:
        report.fail(what, f"{first:.6g}", expected)
    if len(log) < STEPS_TO_FALL:
        return
    if final < first:
        report.ok(f"{name}: the loss falls from {first:.6g} to {final:.6g}")
    else:
        report.fail(f"{name}: the loss after {len(log)} steps", f"{final:.6g}", f"less than {first:.6g}, that of the first")


def check_memory(report, name, case, log):
    """What the arena was used for, against the plan; and what the libraries took after the first step."""
    peak, planned = log[-1].get("peak_bytes"), case["arena"]
    if peak == planned:
        report.ok(f"{name}: {peak:,} bytes of the arena used, as planned")
    else:
        report.fail(f"{name}: bytes of the arena that were used", peak, f"{planned}, the plan")
    library = log[0].get("library_bytes")
    if library is None:
        report.fail(f"{name}: library_bytes in the log of step 1", "none", "a number of bytes")
    else:
        text = f"{name}: libraries took {library / 2**20:.0f} MiB beside an arena of {planned / 2**20:.0f} MiB"
        report.ok(text)
        report.figure(f"{name} memory", library, text)
