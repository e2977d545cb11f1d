#!/usr/bin/env python3
"""check_restarts.py SCRATCH: --max-restarts goes on from the last checkpoint when a rank dies, and ends bit for bit as if none had.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from checkpoints import LIMIT, Runs, expect, lines_of, logged, mlp, run_cases, same, until_hit
from training import GOLDEN, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
STEPS = 2000


def children(process):
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def killed(runs, program, kills, root, *words):
    """A run of which a rank is killed that many times, each after a checkpoint more: what it says, and its status."""
    return until_hit(lambda: try_to_kill(runs, program, kills, root, *words))


def try_to_kill(runs, program, kills, root, *words):
    log, hits = runs.at("log.jsonl"), 0
    log.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    run = subprocess.Popen(runs.command(program, "--log", log, "--save", root, *words, steps=STEPS), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    before = set()
    for _ in range(kills):
        steps = lines_of(log)
        while run.poll() is None:
            now = children(run)
            if now and not set(now) & before and lines_of(log) > steps + 5:
                break
            time.sleep(0.005)
        before = set(children(run))
        try:
            os.kill(max(before), signal.SIGKILL)
            hits += lines_of(log) < STEPS
        except (ValueError, ProcessLookupError):
            pass  # it has ended
    said = run.communicate(timeout=LIMIT)[0]
    return (said, run.returncode) if hits == kills or run.returncode else None


def restarts_end_as_no_failure(runs, programs):
    for name, program in programs.items():
        runs.run(program, "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=STEPS)
        root, out = runs.at(f"root-{name}"), runs.at("out.safetensors")
        said, status = killed(runs, program, 2, root, "--save-every", 50, "--keep", 1, "--max-restarts", 3, "--export", out)
        expect(status == 0, f"{name}: got status {status}: {said}")
        for text in ("was killed by signal 9 (Killed)", "restart 1 of 3", "restart 2 of 3"):
            expect(text in said, f"{name}: lacking '{text}' in: {said}")
        same(out, runs.at("whole.safetensors"), "weights")
        expect(logged(runs.at("log.jsonl")) == logged(runs.at("whole.jsonl")), "another log")
        causes = [json.loads(line)["restart"] for line in runs.at("log.jsonl").read_text().splitlines() if '"restart"' in line]
        expect(causes and all("was killed by signal 9" in cause["cause"] for cause in causes), f"{causes}")
        expect([cause["number"] for cause in causes][-1] == 2, f"{causes}")


def too_many_failures_end_the_run(runs, programs):
    said, status = killed(runs, programs["two"], 2, runs.at("many"), "--save-every", 50, "--max-restarts", 1)
    expect(status == 1, f"got status {status}: {said}")
    expect("restart 1 of 1" in said and "; given up after 1 restart" in said, said)


def a_signal_still_ends_it(runs, programs):
    log = runs.at("signal.jsonl")
    run = subprocess.Popen(runs.command(programs["two"], "--save", runs.at("signal"), "--log", log, "--max-restarts", 3, steps=10**9),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while run.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    said = run.communicate(timeout=LIMIT)[0]
    expect(run.returncode == 143 and "stopped by SIGTERM" in said and ": restart " not in said, f"{run.returncode}: {said}")


def a_failure_after_a_signal_is_no_cause_of_a_restart(runs, programs):
    log = runs.at("after-signal.jsonl")
    run = subprocess.Popen(runs.command(programs["two"], "--save", runs.at("after-signal"), "--log", log, "--max-restarts", 3, steps=10**9),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while run.poll() is None and not lines_of(log):
        time.sleep(0.01)
    rank = children(run)[-1]
    os.kill(rank, signal.SIGSTOP)  # or it would save and end
    run.send_signal(signal.SIGTERM)
    os.kill(rank, signal.SIGKILL)
    said = run.communicate(timeout=LIMIT)[0]
    expect(run.returncode == 1 and "was killed by signal 9" in said and "; not restarted, as a signal requests the end of the run\n" in said
           and said.count("error: ") == 1 and ": restart " not in said, f"{run.returncode}: {said}")


def launchers_restart_by_themselves(runs, programs):
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    runs.run(programs["two"], "--save", runs.at("launched"), "--max-restarts", 3, status=2, env={**os.environ, **ranks},
             says=("--max-restarts restarts ranks that the program starts as processes of its own, but the launcher started this one: "
                   "let the launcher restart the job, with --resume=latest"))


def several_machines_need_a_launcher(runs, programs):
    runs.run(programs["two"], "--save", runs.at("nodes"), "--max-restarts", 3, status=1,
             env={**os.environ, "NNODES": "2", "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1"},
             says=("error: NNODES is '2', but no launcher has started this process, which alone runs on one machine: start it with torchrun, mpirun or "
                   "srun on the machines of the job, or unset NNODES to run on this machine only\n"))
    expect(not runs.at("nodes").exists(), "a run that is refused has made its folder")
    runs.run(programs["two"], env={**os.environ, "NNODES": "1"})


def main():
    os.environ.update(unoptimized())
    folder = pathlib.Path(sys.argv[1])
    programs = {"one": mlp(folder / "one", "fsdp=1"), "two": mlp(folder / "two", "fsdp=2")}
    run_cases((restarts_end_as_no_failure, too_many_failures_end_the_run, a_signal_still_ends_it,
               a_failure_after_a_signal_is_no_cause_of_a_restart, launchers_restart_by_themselves, several_machines_need_a_launcher),
              Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
