#!/usr/bin/env python3
"""check_torchrun.py SCRATCH TORCHRUN: elastic jobs of torchrun, with two agents on this machine.

When an agent is killed with its ranks, the other one restarts the job with the ranks that are left, on the program's plan for that many, from the
latest checkpoint; when a rank is killed, both restart it with all ranks. No step is missing or logged twice. Losses and weights are bit for bit those
of a run without a failure, or, where the number of ranks changes, of two ranks that continue from the same checkpoint.
"""

import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import time

import training
from checkpoints import LIMIT, Runs, expect, lines_of, logged, mlp, run_cases, same, until_hit
from ports import free_port
from training import GOLDEN

STEPS, EVERY, PER_AGENT = 3000, 50, 2


def agent(runs, number, endpoint, words):
    """An agent of torchrun, on a machine of its own as far as ranks can tell."""
    script = runs.at("train.sh")
    # torchrun would interpret '--log' as one of its options.
    script.write_text(f"exec {shlex.join(words)}\n")
    command = [sys.argv[2], "--nnodes=1:2", f"--nproc-per-node={PER_AGENT}", "--max-restarts=3", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}",
               "--rdzv-id=elastic", "--rdzv-conf=last_call_timeout=20", "--local-addr=127.0.0.1", "--no-python", "bash", str(script)]
    # Ranks of both agents meet over TCP, as those of two machines do.
    environment = {**os.environ, "FSDP_MACHINE": f"machine-{number}", "OMP_NUM_THREADS": "1"}
    with open(runs.at(f"agent-{number}.txt"), "w") as said:
        return subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=environment)


def await_port(port, process):
    end = time.monotonic() + LIMIT
    while process.poll() is None and time.monotonic() < end:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)


class Job:
    def __init__(self, runs, program):
        self.runs, self.program, self.log, self.root = runs, program, runs.at("log.jsonl"), runs.at("root")
        subprocess.run(["rm", "-rf", self.log, self.root, runs.at("out.safetensors")], check=True)
        words = runs.command(program, "--save", self.root, "--save-every", EVERY, "--resume=latest", "--log", self.log,
                             "--export", runs.at("out.safetensors"), "--flight-record=none", steps=STEPS)
        port = free_port()
        self.agents = []
        for number in range(2):  # the first one has torchrun's store
            self.agents.append(agent(runs, number, f"127.0.0.1:{port}", words))
            if number == 0:
                await_port(port, self.agents[0])

    def ranks(self, number):
        found = []
        for process in training.descendants(self.agents[number].pid):
            try:
                if os.readlink(f"/proc/{process}/exe") == str(self.program):
                    found.append(process)
            except OSError:
                pass  # it has ended
        return found

    def said(self):
        return "\n".join(self.runs.at(f"agent-{number}.txt").read_text() for number in range(2))

    def trains(self):
        """Waits until both agents' ranks have saved. False where the run has ended, or began without the second agent, which on a busy machine may
        come too late."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and all(process.poll() is None for process in self.agents):
            if lines_of(self.log) > 2 * EVERY:
                return all(len(self.ranks(number)) == PER_AGENT for number in range(2)) and lines_of(self.log) < STEPS - EVERY
            time.sleep(0.005)
        return False

    def end(self):
        return [process.wait(LIMIT) for process in self.agents]


def kill(processes):
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def hit(runs, program, victims):
    """A job of which `victims` are killed: its statuses, and the steps logged by then."""
    def run():
        job = Job(runs, program)
        if not job.trains():
            kill([process for number in range(2) for process in (job.agents[number].pid, *job.ranks(number))])
            job.end()
            return None
        kill(victims(job))
        lines = lines_of(job.log)
        statuses = job.end()
        return (job, statuses, lines) if lines < STEPS else None

    return until_hit(run)


def a_lost_agent_shrinks_the_job(runs, programs):
    program = programs["plans"]
    job, statuses, lines = hit(runs, program, lambda job: [job.agents[1].pid, *job.ranks(1)])
    said = job.said()
    expect(statuses == [0, -signal.SIGKILL], f"{statuses}: {said}")
    got, whole = logged(job.log), logged(runs.at("whole.jsonl"))
    expect([line["step"] for line in got] == list(range(1, STEPS + 1)), f"steps are missing or logged twice: {said}")
    manifest = json.loads((job.root / f"step-{STEPS:08d}" / "manifest.json").read_text())
    runs_of_job = [(run["plan"], run["ranks"]) for run in manifest["runs"]]
    expect(runs_of_job == [("data=2,fsdp=2", 4), ("fsdp=2", 2)], f"{runs_of_job}: {said}")
    resumed = manifest["runs"][1]["resumed"]["step"]
    expect(lines - 2 * EVERY <= resumed <= lines + EVERY and resumed % EVERY == 0, f"resumed from step {resumed}, killed after {lines}: {said}")
    expect(got[:resumed] == whole[:resumed], f"other losses before the failure: {said}")
    # Two ranks that this test starts from the same checkpoint.
    log, out = runs.at("two.jsonl"), runs.at("two.safetensors")
    runs.run(program, "--plan=fsdp=2", "--resume", job.root / f"step-{resumed:08d}", "--log", log, "--export", out, steps=STEPS)
    expect(got[resumed:] == logged(log), f"other losses after the failure: {said}")
    same(runs.at("out.safetensors"), out, "weights")


def a_lost_rank_restarts_the_job(runs, programs):
    job, statuses, _ = hit(runs, programs["plans"], lambda job: job.ranks(1)[:1])
    said = job.said()
    expect(statuses == [0, 0] and "resumed from '" in said, f"{statuses}: {said}")
    expect(logged(job.log) == logged(runs.at("whole.jsonl")), f"another log: {said}")
    same(runs.at("out.safetensors"), runs.at("whole.safetensors"), "weights")


def main():
    folder = pathlib.Path(sys.argv[1])
    os.environ.update(training.unoptimized())
    runs, programs = Runs(folder / "runs", GOLDEN / "mlp" / "data.safetensors"), {"plans": mlp(folder / "plans", "data=2,fsdp=2|fsdp=2")}
    runs.run(programs["plans"], "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=STEPS)
    run_cases((a_lost_agent_shrinks_the_job, a_lost_rank_restarts_the_job), runs, programs)


if __name__ == "__main__":
    main()
