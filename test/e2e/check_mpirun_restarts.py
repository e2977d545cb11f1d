#!/usr/bin/env python3
"""check_mpirun_restarts.py SCRATCH: mpirun ends the job with its first failed rank; the loop of docs/launching.md starts it again.

A rank is killed in two attempts. mpirun ends with another status than 0 each time, the next attempt resumes from the latest checkpoint, and the last
one ends with the log and the weights of a run without a failure, bit for bit. Once with ranks in shared memory, once with ranks that exchange MPI messages.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import training
from checkpoints import LIMIT, Runs, expect, folders, lines_of, logged, mlp, run_cases, same, until_hit
from training import GOLDEN

STEPS, EVERY, RANKS, KILLS = 1500, 50, 2, 2
DOCS = training.HERE.parents[1] / "docs" / "launching.md"


def loop():
    """The script that docs/launching.md shows, with this test's command in the place of mpirun's."""
    found = re.search(r"```sh\n(attempt=1\nuntil )mpirun [^;]*(; do\n.*?\ndone\n)```", DOCS.read_text(), re.DOTALL)
    expect(found, f"{DOCS} has no loop around mpirun")
    return found[1] + '"$@"' + found[2]


def ranks_of(loop_process, program):
    """Processes of the job that run the program."""
    found = []
    for process in training.descendants(loop_process.pid):
        try:
            if os.readlink(f"/proc/{process}/exe") == str(program):
                found.append(process)
        except OSError:
            pass  # it has ended
    return found


def try_to_kill(runs, program, words):
    """The loop, in which one rank is killed in KILLS attempts: what it says. None where the run ended before that."""
    log, root, seen = runs.at("log.jsonl"), runs.at("root"), set()
    subprocess.run(["rm", "-rf", log, root], check=True)
    command = ["mpirun", "-n", str(RANKS), "--oversubscribe",
               *runs.command(program, "--save", root, "--save-every", EVERY, "--resume=latest", "--log", log, "--export", runs.at("out.safetensors"),
                             "--flight-record=none", *words, steps=STEPS)]
    started = subprocess.Popen(["bash", "-c", "sleep() { :; }\n" + loop(), "bash", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    hits = 0
    for kill in range(KILLS):
        lines, ranks, end = lines_of(log), [], time.monotonic() + LIMIT
        while started.poll() is None and time.monotonic() < end:
            ranks = ranks_of(started, program)
            if len(ranks) == RANKS and not set(ranks) & seen and lines_of(log) > lines + EVERY:
                break
            time.sleep(0.005)
        if started.poll() is not None or lines_of(log) >= STEPS:
            break
        seen |= set(ranks)
        try:
            os.kill(ranks[kill % RANKS], signal.SIGKILL)
            hits += 1
        except ProcessLookupError:
            break
    said = started.communicate(timeout=LIMIT)[0]
    expect(started.returncode == 0, f"got status {started.returncode}: {said}")
    return said if hits == KILLS and said.count("mpirun ended with status ") == KILLS else None


def restarted_jobs_end_as_no_failure(runs, programs):
    for name, words in training.chosen((("auto", ()), ("mpi", ("--communicator=mpi",))), 1):
        runs.run(programs["two"], "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=STEPS)
        said = until_hit(lambda: try_to_kill(runs, programs["two"], words))
        statuses = re.findall(r"mpirun ended with status (\d+), attempt (\d+)", said)
        expect([attempt for _, attempt in statuses] == ["1", "2"] and all(status != "0" for status, _ in statuses), f"{name}: {statuses}: {said}")
        expect(said.count("resumed from '") == KILLS, f"{name}: {said}")
        expect(logged(runs.at("log.jsonl")) == logged(runs.at("whole.jsonl")), f"{name}: another log: {said}")
        same(runs.at("out.safetensors"), runs.at("whole.safetensors"), f"{name}: weights")
        expect(f"step-{STEPS:08d}" in folders(runs.at("root")), f"{name}: {folders(runs.at('root'))}")


def a_job_that_always_fails_is_given_up(runs, programs):
    command = ["mpirun", "-n", str(RANKS), "--oversubscribe", *runs.command(programs["two"], "--resume=latest", "--save", runs.at("no") / "folder" / "there")]
    done = subprocess.run(["bash", "-c", "sleep() { :; }\n" + loop(), "bash", *command], capture_output=True, text=True, timeout=LIMIT)
    expect(done.returncode == 1 and done.stderr.count("mpirun ended with status ") == 4, f"{done.returncode}: {done.stderr}")


def main():
    folder = pathlib.Path(sys.argv[1])
    os.environ.update(training.unoptimized())
    run_cases((restarted_jobs_end_as_no_failure, a_job_that_always_fails_is_given_up),
              Runs(folder / "runs", GOLDEN / "mlp" / "data.safetensors"), {"two": mlp(folder / "two", "fsdp=2")})


if __name__ == "__main__":
    main()
