"""Rung 8: compute-sanitizer on the tests of each file of kernels, and on a step of a tiny model."""

import concurrent.futures
import os
import re

from gpu.cases import TEST_FILES, data_of, program_of
from gpu.ladder import Job
from gpu.report import last, run, said

FOUND = 99
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
AT_ONCE = max(1, min(6, (os.cpu_count() or 2) // 2))
SECONDS = 150
MODEL, MESH = "gpt2-tiny-bf16", "2"
# The sanitizer's message on a machine that refuses it; lines of the program do not begin like it.
REFUSED = re.compile(r"^=========.*(?:not supported|Unable to|Failed to initialize|Internal (?:Sanitizer )?Error"
                     r"|insufficient driver|error 999)", re.I | re.M)


def suites_of(folder, name):
    """GoogleTest's filter for all tests of a file."""
    text = next((folder / "test" / "unit").glob(f"*/{name}Test.cpp")).read_text()
    suites = dict.fromkeys(re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),", text, re.M))
    return ":".join(f"{suite}.*:{suite}/*" for suite in suites)


def sanitize(machine, tool, which, what, command, budget):
    report = machine.report
    text = f"{which} of {what}"
    status, said_all = run([tool, "--tool", which, "--error-exitcode", str(FOUND), "--print-limit", "20", *command], SECONDS, budget)
    report.details(text, said_all)
    if status == 124:
        report.fail(f"{text}: it did not end within {SECONDS} s", said=said(said_all, 40))
        return
    summary = re.search(r"={9} (.*SUMMARY.*)", said_all)
    refused = REFUSED.search(said_all)
    if refused and not (summary and status in (0, FOUND)):
        report.left_out(text, f"the machine refuses it: {refused.group(0)[-160:]}")
    elif status == 0 and summary:
        report.ok(f"{text}: {summary.group(1)}")
    else:
        report.fail(text, f"status {status}, {summary.group(1) if summary else last(said_all)}", "status 0 and no errors",
                    said(said_all, 40))


def sanitizer_jobs(machine, tool, cases, tests, has_tests, after):
    """A job for each file of tests and tool; they run `AT_ONCE` at a time, as a sanitizer has one thread."""
    def alone(budget):
        machine.report.left_out("sanitizers", "no compute-sanitizer on this machine" if not machine.emulator else
                                "no compute-sanitizer on this machine; the emulator looks for the same")
    if not tool:
        return [Job("compute-sanitizer", alone)]
    subjects = {}
    if has_tests:
        for name in TEST_FILES:
            subjects[f"{name}KernelsTest.cpp"] = (tests[0], ["--gtest_brief=1", f"--gtest_filter={suites_of(machine.folder, name + 'Kernels')}"])
    if MODEL in cases:
        subjects[f"a step of {MODEL} on {MESH} ranks"] = (
            program_of(MODEL, MESH), ["--data", machine.folder / data_of(MODEL), "--steps", "1", "--communicator=loopback"])

    def perform(budget, which, names):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            waiting = [pool.submit(sanitize, machine, tool, which, name, [machine.build.path(subjects[name][0]), *subjects[name][1]],
                                   budget) for name in names]
            for one in waiting:
                one.result()
    jobs, names = [], list(subjects)
    for which in TOOLS:
        for first in range(0, len(names), AT_ONCE):
            some = names[first:first + AT_ONCE]
            jobs.append(Job(f"{which} of {', '.join(some)}", lambda budget, which=which, some=some: perform(budget, which, some), after,
                            [subjects[name][0] for name in some], SECONDS + 30))
    return jobs
