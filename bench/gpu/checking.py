"""Runs the kernels' tests and every program; compares losses."""

import concurrent.futures
import json
import re

from gpu.cases import between_meshes, data_of, program_of
from gpu.report import Budget, OutOfTime, run, said

AT_ONCE = 3  # programs: they are small, and most of their time is starting


def read_log(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def worst(log, expected):
    """Largest relative difference of losses; infinite where steps are missing or no number."""
    if len(log) != len(expected) or not log:
        return float("inf")
    differences = [abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(log, expected)]
    return max(differences) if all(d == d for d in differences) else float("inf")


def train(build, folder, name, mesh, steps, budget, report, tag="", trace=False, most=90):
    """The log of a run, or [] after saying why there is none."""
    scratch = folder / "logs"
    stem = f"{name}-{mesh}{tag}"
    options = ["--communicator=loopback"] if mesh != "1" else []
    if trace:
        options += ["--trace", scratch / f"{stem}.trace"]
    what = f"{name} on {mesh} ranks{', traced' if trace else ''}"
    program = build / program_of(name, mesh)
    if not program.exists():
        report.left_out(what, "not built")
        return []
    try:
        status, text = run([program, "--data", folder / data_of(name), "--steps", steps, "--log",
                            scratch / f"{stem}.jsonl", *options], most, budget)
    except OutOfTime as error:
        report.left_out(what, str(error))
        return []
    report.details(what, text)
    if status:
        report.fail(f"{what}: the program ended with status {status}\n{said(text)}")
        return []
    log = read_log(scratch / f"{stem}.jsonl")
    if len(log) != int(steps):
        report.fail(f"{what}: the log has {len(log)} steps, expected {steps}")
        return []
    return log


def check_kernels(program, budget, report):
    """The kernels' own tests against the CPU's kernels, and products against double precision."""
    if not program.exists():
        report.left_out("kernel tests", f"no {program.name}")
        return
    status, text = run([program, "--gtest_brief=1"], 90, budget)
    report.details("kernel tests", text)
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    if status == 0 and passed:
        report.ok(f"{passed.group(1)} tests of kernels and products agree with their references")
        return
    failed = list(dict.fromkeys(re.findall(r"\[  FAILED  \] ([\w/]+\.[\w/]+)", text)))[:20]
    report.fail(f"kernel tests: status {status}, {passed.group(1) if passed else 0} passed, "
                f"failed: {', '.join(failed)}\n" + said("\n".join(text.splitlines()[:60]), 60))


def check_ranks(program, jobs, budget, report):
    """Collectives between ranks that share the GPU, against those of the host; and that faults reach every rank."""
    if not program.exists():
        report.left_out("jobs of several ranks", f"no {program.name}")
        return
    part = Budget(90, budget)
    for mesh, mode, how, expected, says in jobs:
        patience = "5" if mode == "leave" else "60"
        always = {"FSDP_NCCL_ALWAYS": "1"} if how == "nccl-always" else {}
        status, text = run([program, mesh, mode, how.split("-")[0]], 45, part, {"FSDP_TIMEOUT": patience, **always})
        what = f"{mode} over {mesh} by {how}"
        report.details(what, text)
        if status == expected and re.search(says, text):
            report.ok(f"{what}: {text.strip().splitlines()[-1]}")
        else:
            report.fail(f"{what}: status {status}, expected {expected} and '{says}'\n{said(text)}")


def check_case(name, case, logs, folder, report):
    """`logs`: by mesh, of a run and of one more, which is traced."""
    one = logs["1"][0] if "1" in logs else []
    for mesh, (log, again) in logs.items():
        if not log:
            continue
        compared = []
        if case["tolerance"] is not None:
            compared.append(("the CPU", worst(log, read_log(folder / "cases" / name / "cpu.jsonl")[:len(log)]),
                             case["tolerance"]))
        if mesh != "1" and one:
            compared.append(("1 rank", worst(log, one), between_meshes(case["options"])))
        if again:
            compared.append(("itself, traced", worst(again, log[:len(again)]), 0.0))
        for other, difference, allowed in compared:
            line = f"{name} on {mesh} ranks: losses within {difference:.2g} of {other} (allowed {allowed:g})"
            report.ok(line) if difference <= allowed else report.fail(line)
        if case["tolerance"] is None and not log[-1]["loss"] < log[0]["loss"]:
            report.fail(f"{name}: the loss went from {log[0]['loss']} to {log[-1]['loss']}, expected it to fall")


def check_cases(build, folder, cases, most_steps, budget, report):
    """Those that are not timed; what is said of a case stands together, as soon as it is known."""
    part = Budget(150, budget)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = {}
        for name, case in cases.items():
            steps = min(case["steps"], most_steps)
            for mesh in case["meshes"]:
                runs = [pool.submit(train, build, folder, name, mesh, steps, part, report, tag, bool(tag))
                        for tag in ("", "-again")]
                waiting.setdefault(name, {})[mesh] = runs
        for name, runs in waiting.items():
            logs = {mesh: [one.result() for one in pair] for mesh, pair in runs.items()}
            check_case(name, cases[name], logs, folder, report)
