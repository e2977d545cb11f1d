"""compute-sanitizer on a tiny program and on the kernels' tests."""

import concurrent.futures
import re

from gpu.cases import SANITIZED, data_of, program_of
from gpu.report import Budget, OutOfTime, run, said

FOUND = 99
# Hundreds of random products are cuBLASLt's business.
FILTER = "-*RandomProducts*"


def sanitize(build, folder, toolkit, budget, report):
    tool = toolkit.tool("compute-sanitizer")
    if not tool:
        report.left_out("sanitizers", "no compute-sanitizer")
        return
    name, mesh = SANITIZED
    subjects = {f"{name} on {mesh} ranks": [build / program_of(name, mesh), "--data", folder / data_of(name), "--steps", "1",
                                            "--communicator=loopback"],
                "the kernels' tests": [build / "device-tests", "--gtest_brief=1", f"--gtest_filter={FILTER}"]}
    part = Budget(120, budget)

    def one(which, subject):
        what = f"{which} of {subject}"
        command = subjects[subject]
        if not command[0].exists():
            return report.left_out(what, "not built")
        try:
            status, text = run([tool, "--tool", which, "--error-exitcode", str(FOUND), "--print-limit", "20", *command],
                               100, part)
        except OutOfTime as error:
            return report.left_out(what, str(error))
        report.details(what, text)
        summary = re.search(r"={9} (.*SUMMARY.*)", text)
        if status == 124:
            return report.left_out(what, text.splitlines()[-1])
        if re.search(r"not supported|Unable to|Failed to initialize", text) and not summary:
            return report.left_out(what, said(text, 3).strip().replace("\n", "; "))
        if status == 0 and summary:
            return report.ok(f"{what}: {summary.group(1)}")
        return report.fail(f"{what}: status {status}, {summary.group(1) if summary else 'no summary'}\n{said(text, 40)}")

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda pair: one(*pair), [(which, subject) for subject in subjects
                                                for which in ("memcheck", "racecheck", "synccheck")]))
