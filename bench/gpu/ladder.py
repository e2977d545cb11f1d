"""Rungs of jobs, performed in order within the time of a part."""

import collections

from gpu.report import Budget, OutOfTime

Rung = collections.namedtuple("Rung", "number title jobs")


class Job:
    """`perform(budget)` says what it finds to the report. Nothing is run, and the reason said, where one of `after` (names of jobs
    that are done earlier) has failed or one of `programs` could not be built. After `seconds` it has failed."""

    def __init__(self, name, perform, after=(), programs=(), seconds=240):
        self.name, self.perform, self.after, self.programs, self.seconds = name, perform, after, programs, seconds


def climb(rungs, chosen, build, budget, state, report):
    """Performs what is not done. Returns the names of the jobs that there was no time for."""
    unfinished, announced = [], None
    for rung in rungs:
        for job in rung.jobs:
            name = f"{rung.number}. {job.name}"
            if name in state.done or (chosen and rung.number not in chosen):
                continue
            if unfinished:
                unfinished.append(name)
                continue
            if announced != rung.number:
                announced = rung.number
                report(f"\n== {rung.number}. {rung.title}")
            try:
                with report.job(name):
                    one(name, job, build, budget, state, report)
            except OutOfTime as error:
                report(f"not done: {name}: {error}")
                unfinished.append(name)
    return unfinished


def one(name, job, build, budget, state, report):
    if budget.left() < 2:
        raise OutOfTime("no time is left")
    for other in job.after:
        if state.failed(other):
            report.left_out(name, f"depends on '{other}', which failed or was left out")
            return
    for program in job.programs:
        if not build.wait(program, budget):
            report.left_out(name, f"depends on the program {program}, which was not built")
            return
    job.perform(Budget(job.seconds, budget))
