#!/usr/bin/env python3
"""check_machine_restarts.py SCRATCH: one process for each machine (NNODES), which forks its ranks; together they restart the job.

The machines are told apart by FSDP_MACHINE, and their ranks meet over TCP. A rank of the second is killed, or stopped: the run ends bit for bit as the one
that nobody touched, on both machines with status 0. When a machine's process itself is killed the job ends, and the other says which.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from check_restarts import children
from checkpoints import LIMIT, Runs, expect, lines_of, logged, mlp, run_cases, same, until_hit
from ports import free_port
from training import GOLDEN

DATA = GOLDEN / "mlp" / "data.safetensors"
STEPS = 1500
MACHINES = 2


class Job:
    """Both machines' processes of a run; `behind`: options of each."""

    def __init__(self, runs, program, *words, steps=STEPS, name="log.jsonl", behind=((), ()), **environment):
        self.log = runs.at(name)
        self.log.unlink(missing_ok=True)
        self.steps, port = steps, free_port()
        self.machines = []
        for machine in range(MACHINES):
            names = {"NNODES": MACHINES, "NODE_RANK": machine, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                     "FSDP_MACHINE": f"machine-{machine}", **environment}
            self.machines.append(subprocess.Popen(
                runs.command(program, "--log", self.log, "--flight-record=none", *words, *behind[machine], steps=steps), text=True,
                env={**os.environ, **{key: str(value) for key, value in names.items()}}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))

    def lines(self):
        return lines_of(self.log)

    def await_steps(self, count, machine=1, others=()):
        """Until `count` steps more are logged, by an attempt none of whose ranks is among `others`; the machine's ranks."""
        begin, end = self.lines(), time.monotonic() + LIMIT
        while time.monotonic() < end and all(process.poll() is None for process in self.machines):
            ranks = children(self.machines[machine])
            if ranks and not set(ranks) & set(others) and self.lines() > begin + count:
                return ranks
            time.sleep(0.005)
        return []

    def hit(self, times, number=signal.SIGKILL):
        """Sends a signal to the last rank of the second machine, each time in another attempt. False where the run has ended before."""
        ranks = []
        for _ in range(times):
            ranks = self.await_steps(10, others=ranks)
            if not ranks:
                return False
            try:
                os.kill(ranks[-1], number)
            except ProcessLookupError:
                return False
        return self.lines() < self.steps

    def end(self):
        """What each says, and the statuses."""
        said = [process.communicate(timeout=LIMIT)[0] for process in self.machines]
        return said, [process.returncode for process in self.machines]


# What its own machine says, or, where that is first, a rank of another one.
KILLED = ("rank 3: was killed by signal 9 (Killed)", "rank 3: exited unexpectedly on '", "for rank 3, which has ended already")


def hit_job(times, *words, number=signal.SIGKILL, roots=(), **named):
    """A job of which a rank is hit so often: what its machines say, their statuses, and the job."""
    def run():
        for root in roots:
            shutil.rmtree(root, ignore_errors=True)
        job = Job(*words, **named)
        hit = job.hit(times, number)
        said, statuses = job.end()
        return (said, statuses, job) if hit or any(statuses) else None

    return until_hit(run)


def restarts_end_as_no_failure(runs, programs):
    program, out = programs["four"], runs.at("out.safetensors")
    runs.run(program, "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=STEPS)
    for name, number, words in (("killed", signal.SIGKILL, ()), ("stopped", signal.SIGSTOP, ("--timeout=5",))):
        times, root = 2 if name == "killed" else 1, runs.at(f"root-{name}")
        said, statuses, job = hit_job(times, runs, program, "--save", root, "--save-every", 50, "--keep", 1, "--max-restarts", 3, "--export", out,
                                      *words, number=number, roots=[root])
        expect(statuses == [0, 0], f"{name}: got {statuses}: {said}")
        cause = "|".join(KILLED) if name == "killed" else "waiting for rank 3|rank 3: not responding: no heartbeat for"
        for machine, text in enumerate(said):
            for restart in range(1, times + 1):
                expect(f": restart {restart} of 3\n" in text, f"{name}: machine {machine} lacks restart {restart}: {said}")
        same(out, runs.at("whole.safetensors"), "weights")
        expect(logged(job.log) == logged(runs.at("whole.jsonl")), f"{name}: another log")
        restarts = [json.loads(line)["restart"] for line in job.log.read_text().splitlines() if '"restart"' in line]
        expect(restarts and restarts[-1]["number"] == times, f"{name}: {restarts}")
        expect(all(any(way in restart["cause"] for way in cause.split("|")) for restart in restarts), f"{name}: {restarts}")


def all_give_up_together(runs, programs):
    said, statuses, _ = hit_job(2, runs, programs["four"], "--save", runs.at("many"), "--save-every", 50, "--max-restarts", 1, steps=10**8)
    expect(statuses == [1, 1], f"got {statuses}: {said}")
    for text in said:
        expect("restart 1 of 1" in text and any(way in text for way in KILLED) and "; given up after 1 restart\n" in text, f"{said}")


def fewer_ranks_go_on(runs, programs):
    """With --elastic the next attempt takes the plan that both machines share evenly: not the one with three ranks."""
    said, statuses, job = hit_job(1, runs, programs["plans"], "--save", runs.at("elastic"), "--save-every", 50, "--max-restarts", 3, "--elastic",
                                  steps=600, roots=[runs.at("elastic")])
    expect(statuses == [0, 0] and all("restart 1 of 3, on the mesh fsdp=2" in text for text in said), f"{statuses}: {said}")
    expect([step["step"] for step in logged(job.log)] == list(range(1, 601)), "steps are missing or stand twice")


def a_machine_that_is_lost_ends_the_job(runs, programs):
    for lost in range(MACHINES):
        job = Job(runs, programs["four"], "--save", runs.at(f"lost-{lost}"), "--save-every", 50, "--max-restarts", 3, steps=10**8)
        job.await_steps(10)
        ranks = [rank for process in job.machines for rank in children(process)]
        expect(len(ranks) == 4, f"{ranks}")
        job.machines[lost].kill()
        begin = time.monotonic()
        said, statuses = job.end()
        expect(statuses[1 - lost] == 1, f"{lost}: got {statuses}: {said}")
        expect(time.monotonic() - begin < 100, f"{lost}: took {time.monotonic() - begin} s")
        expect(f"error: machine {lost} ('" in said[1 - lost] and
               "'): exited unexpectedly: it was killed, or ended before the job; its ranks are lost, and the job ends\n" in said[1 - lost], f"{lost}: {said}")
        expect("restart" not in said[1 - lost], f"{lost}: {said}")
        expect(not any(os.path.exists(f"/proc/{rank}/fd/0") for rank in ranks), f"{lost}: ranks go on")


def a_signal_ends_both(runs, programs):
    job = Job(runs, programs["four"], "--save", runs.at("signal"), "--max-restarts", 3, steps=10**8)
    job.await_steps(10)
    job.machines[1].send_signal(signal.SIGTERM)
    said, statuses = job.end()
    expect(statuses == [143, 143] and "stopped by SIGTERM" in said[0] and ": restart " not in "".join(said), f"{statuses}: {said}")


def a_failure_after_a_signal_is_no_cause_of_a_restart(runs, programs):
    for machine in range(MACHINES):
        job = Job(runs, programs["four"], "--save", runs.at(f"after-signal-{machine}"), "--max-restarts", 3, steps=10**8)
        rank = job.await_steps(10)[-1]
        os.kill(rank, signal.SIGSTOP)  # or it would save and end
        job.machines[machine].send_signal(signal.SIGTERM)
        os.kill(rank, signal.SIGKILL)
        said, statuses = job.end()
        expect(statuses == [1, 1], f"{machine}: got {statuses}: {said}")
        expect(all("; not restarted, as a signal asks for the end of the run\n" in text and text.count("error: ") == 1 and ": restart " not in text for text in said),
               f"{machine}: {said}")


def without_restarts_it_is_one_job(runs, programs):
    job = Job(runs, programs["four"], "--export", runs.at("once.safetensors"))
    said, statuses = job.end()
    expect(statuses == [0, 0], f"{statuses}: {said}")
    same(runs.at("once.safetensors"), runs.at("whole.safetensors"), "weights")


def wrong_starts_are_refused(runs, programs):
    job = Job(runs, programs["four"], "--save", runs.at("other"), steps=8, behind=(("--max-restarts=3",), ("--max-restarts=2",)))
    said, statuses = job.end()
    expect(statuses == [1, 1], f"{statuses}: {said}")
    for text in said:
        expect("error: machine 1 was started with --max-restarts 2, machine 0 with --max-restarts 3; start all machines with the same program, "
               "options and files" in text, f"{said}")
    refused = lambda says, status=1, words=(), **names: runs.run(programs["four"], *words, status=status, says=says, env={**os.environ, **names})
    several = {"NNODES": "3", "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    refused("the mesh 'fsdp=4' has 4 ranks, which 3 machines (NNODES) cannot share evenly: start on a number of machines that divides 4, or compile the "
            "program for another mesh", **several)
    refused("the ranks of several machines (NNODES) that the program starts itself connect over TCP: use --communicator=auto or tcp", 2,
            ("--communicator=shm",), **{**several, "NNODES": "2"})
    refused("NNODES says that the job has 2 machines, but NODE_RANK is not set: set NODE_RANK to this machine's number, from 0, and MASTER_ADDR to the "
            "address of machine 0; or unset NNODES to run on this machine alone", NNODES="2", MASTER_ADDR="127.0.0.1")
    refused("but MASTER_ADDR is not set", NNODES="2", NODE_RANK="1")
    refused("launcher variable 'NODE_RANK' got '2', expected a number from 0 to 1", **{**several, "NNODES": "2", "NODE_RANK": "2"})
    refused("timed out after 1 s at 127.0.0.1:", words=("--timeout=1",), **{**several, "NNODES": "2", "MASTER_PORT": str(free_port())})
    runs.run(programs["four"], env={**os.environ, "NNODES": "1"})  # as alone


def main():
    folder = pathlib.Path(sys.argv[1])
    programs = {"four": mlp(folder / "four", "fsdp=4"), "plans": mlp(folder / "plans", "fsdp=4|fsdp=3|fsdp=2")}
    run_cases((restarts_end_as_no_failure, without_restarts_it_is_one_job, all_give_up_together, fewer_ranks_go_on,
               a_machine_that_is_lost_ends_the_job, a_signal_ends_both, a_failure_after_a_signal_is_no_cause_of_a_restart,
               wrong_starts_are_refused), Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
