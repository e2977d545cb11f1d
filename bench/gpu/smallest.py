"""Rung 1: the smallest things first, while the rest is built."""

import re
import time

from gpu.cases import FIRST, TEST_FILES, program_of
from gpu.checking import compare, read_log, run_tests
from gpu.ladder import Job
from gpu.report import last, run, said

FOUND = "1. kernels found"


def first_test(folder, name):
    """GoogleTest's filter for the first test of a file, for any of its element types."""
    text = next((folder / "test" / "unit").glob(f"*/{name}Test.cpp")).read_text()
    suite, test = re.search(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+), (\w+)\)", text, re.M).groups()
    return f"{suite}.{test}:{suite}/0.{test}"


def find_kernels(machine, budget):
    """Versions, whether there is code for this device, and one launch."""
    status, text = run([machine.build.path("device-first")], 60, budget)
    machine.report.details("device-first", text)
    for line in text.strip().splitlines():
        machine.report(f"        {line}")
    if status == 0:
        machine.report.ok(f"kernels found {time.monotonic() - machine.begin:.0f} s after the start: {last(text)}")
    else:
        machine.report.fail("kernels found: " + last(text) if text.strip() else "kernels found", f"status {status}", "status 0",
                            "" if text.strip() else said(text))


def first_jobs(machine, cases, tests, has_tests):
    jobs = [Job("kernels found", lambda budget: find_kernels(machine, budget), (), ["device-first"])]
    after = [FOUND]
    for name in ("Row", "Matmul", *(other for other in TEST_FILES if other != "Row")) if has_tests else ():
        file, program = f"{name}Kernels" if name != "Matmul" else name, tests[-1] if name == "Matmul" else tests[0]
        what = "one product" if name == "Matmul" else f"one test of {file}Test.cpp"
        jobs.append(Job(what, lambda budget, what=what, file=file, program=program: run_tests(
            machine, what, program, ["--gtest_brief=1", f"--gtest_filter={first_test(machine.folder, file)}"], 60, budget),
            after, [program]))

    def step(budget, name):
        log = machine.train(name, "1", 1, budget, "-first")
        if log:
            expected = read_log(machine.folder / "cases" / name / "cpu.jsonl")[:1]
            compare(machine.report, f"one step of {name}", "the CPU", log, expected, cases[name]["tolerance"])
    for name in FIRST:
        if name in cases:
            jobs.append(Job(f"one step of {name}", lambda budget, name=name: step(budget, name), after, [program_of(name, "1")]))
    return jobs
