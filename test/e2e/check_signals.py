#!/usr/bin/env python3
"""check_signals.py SCRATCH: SIGTERM, SIGINT and SIGHUP save and end a run, twice they end it at once, SIGUSR1 saves and the run continues.

However the ranks were started, they agree on the step; the run that continues from there ends bit for bit as one in one piece.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

from checkpoints import LIMIT, Runs, Wrong, expect, folders, lines_of, logged, mlp, run_cases, same, until_hit
from ports import free_port
from training import GOLDEN, chosen, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
STEPS = 1500  # half a second, so that a signal comes in between; else the run is repeated
FOREVER = 10**9


def wait_until(condition, what, run=None):
    end = time.monotonic() + LIMIT
    while not condition():
        if run and run.processes[0].poll() is not None and not condition():
            raise Wrong(f"ended before {what}: {run.processes[0].communicate()[0]}")
        expect(time.monotonic() < end, f"waited {LIMIT} s for {what}")
        time.sleep(0.01)


def not_ignored():
    """A shell starts what it runs in the background with SIGINT ignored, and a program leaves that as it is."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Started:
    """A run in the background; `log` is its log."""

    def __init__(self, runs, program, *words, steps=FOREVER, before=(), environments=({},)):
        self.log = runs.at("log.jsonl")
        self.log.unlink(missing_ok=True)
        self.processes = []
        for environment in environments:
            words_of_rank = [*map(str, before), *runs.command(program, "--log", self.log, *words, steps=steps)]
            self.processes.append(subprocess.Popen(words_of_rank, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                                   env={**os.environ, **environment}, start_new_session=True, preexec_fn=not_ignored))

    def trains(self, lines=3):
        """Until so many steps are logged."""
        wait_until(lambda: lines_of(self.log) >= lines, "the first steps", self)

    def send(self, number, rank=0):
        self.processes[rank].send_signal(number)

    def end(self, status, says=()):
        said = ""
        for process in self.processes:
            try:
                said += process.communicate(timeout=LIMIT)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                raise Wrong("still runs after the signal") from None
        for process in self.processes:
            expect(process.returncode == status, f"got status {process.returncode}, expected {status}: {said}")
        for text in [says] if isinstance(says, str) else says:
            expect(text in said, f"lacking '{text}' in: {said}")
        return said


def goes_on_bit_for_bit(runs, programs, root, name):
    """From what a signal has left."""
    log, out = runs.at(f"{name}.jsonl"), runs.at(f"{name}.safetensors")
    shutil.copy(runs.at("log.jsonl"), log)
    runs.run(programs["two"], "--save", root, "--resume=latest", "--log", log, "--export", out, steps=STEPS, says="resumed from")
    same(out, runs.at("whole.safetensors"), name)
    expect(logged(log) == logged(runs.at("whole.jsonl")), f"{name}: another log")


def in_one_piece(runs, programs):
    runs.run(programs["two"], "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=STEPS)


def a_signal_saves_and_ends(runs, programs):
    cases = [(number, status, program) for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)) for program in ("two", "one")]
    for number, status, program in chosen(cases, 0, 3, 4):
        root = runs.at(f"root-{program}-{number}")
        run = Started(runs, programs[program], "--save", root)
        run.trains()
        run.send(number)
        run.end(status, says=(f"stopped by {number.name} after step ", "saved '"))
        expect(len(folders(root)) == 1, f"{folders(root)}")
        steps = logged(runs.at("log.jsonl"))
        expect(folders(root) == [f"step-{steps[-1]['step']:08}"], f"{folders(root)}, last step {steps[-1]}")


def stop_in_between(runs, programs, root, steps, *words):
    """None where the run had done all its steps when the signal came."""
    shutil.rmtree(root, ignore_errors=True)
    run = Started(runs, programs["two"], "--save", root, *words, steps=STEPS)
    run.trains(steps)
    run.send(signal.SIGTERM)
    run.processes[0].wait(LIMIT)
    if run.processes[0].returncode == 0 and lines_of(run.log) == STEPS:
        return run.end(0) and None
    return run.end(143)


def the_rest_is_bit_for_bit_the_same(runs, programs):
    chance = random.Random(1)
    for turn in chosen(range(3), 2):
        root = runs.at(f"rest-{turn}")
        until_hit(lambda: stop_in_between(runs, programs, root, chance.randrange(2, STEPS // 20), *(["--save-async"] if turn == 2 else [])))
        goes_on_bit_for_bit(runs, programs, root, f"rest-{turn}")


def the_second_one_ends_at_once(runs, programs):
    # Ranks that are stopped cannot save.
    root = runs.at("twice")
    run = Started(runs, programs["two"], "--save", root)
    run.trains()
    parent = run.processes[0].pid
    children = [int(pid) for pid in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    expect(len(children) == 2, f"{children}")
    os.kill(children[0], signal.SIGSTOP)
    run.send(signal.SIGTERM)
    time.sleep(1)
    expect(run.processes[0].poll() is None, "it waits for the save")
    # One that comes when the parent has only just looked at the first is taken for the same: then the next is the second.
    begin = time.monotonic()
    while run.processes[0].poll() is None and time.monotonic() - begin < 100:
        run.send(signal.SIGTERM)
        time.sleep(1)
    run.end(143)
    expect(time.monotonic() - begin < 100, "the second signal took its time")
    wait_until(lambda: not any(pathlib.Path(f"/proc/{child}").exists() for child in children), "the ranks")
    expect(not [name for name in (folders(root) if root.exists() else []) if (root / name / "manifest.json").exists()],
           "nothing was saved")


def a_group_that_gets_it_twice_saves_once(runs, programs):
    """As timeout(1) and terminals send it: to the program and to its group."""
    root = runs.at("group")

    def at_once():
        """None where this process was not quick enough for one signal."""
        shutil.rmtree(root, ignore_errors=True)
        run = Started(runs, programs["two"], "--save", root)
        run.trains()
        begin = time.monotonic()
        run.send(signal.SIGTERM)
        os.killpg(run.processes[0].pid, signal.SIGTERM)
        seconds = time.monotonic() - begin
        run.processes[0].wait(LIMIT)
        return run if seconds < 0.1 else run.end(143) and None

    until_hit(at_once).end(143, says="saved '")
    expect(len(folders(root)) == 1, f"{folders(root)}")


def usr1_saves_and_goes_on(runs, programs):
    root = runs.at("usr1")
    run = Started(runs, programs["two"], "--save", root)
    run.trains()
    for count in (1, 2):
        run.send(signal.SIGUSR1)
        wait_until(lambda: root.exists() and sum((root / name / "manifest.json").exists() for name in folders(root)) >= count,
                   "a save", run)
    run.send(signal.SIGTERM)
    run.end(143)
    expect(len(folders(root)) == 3, f"{folders(root)}")


def without_save_a_signal_ends_as_ever(runs, programs):
    run = Started(runs, programs["two"])
    run.trains()
    run.send(signal.SIGTERM)
    run.end(-signal.SIGTERM)


def ranks_of_a_launcher_agree(runs, programs):
    root, port = runs.at("torchrun"), free_port()
    ranks = [{"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(port), "FSDP_JOB_ID": f"signals-{os.getpid()}"} for rank in range(2)]
    run = Started(runs, programs["two"], "--save", root, environments=ranks)
    run.trains()
    run.send(signal.SIGTERM, rank=1)  # one rank alone
    run.end(143, says="stopped by SIGTERM after step ")
    expect(len(folders(root)) == 1, f"{folders(root)}")


def mpirun_passes_it_on(runs, programs):
    if not shutil.which("mpirun"):
        print("not shown: no mpirun")
        return
    root = runs.at("mpirun")
    # mpirun kills ranks a second after SIGTERM, which on a loaded machine is too soon for a save; it waits this long, too, where all have ended.
    run = Started(runs, programs["two"], "--save", root,
                  before=("mpirun", "-n", "2", "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "10"))
    run.trains()
    run.send(signal.SIGUSR1)
    wait_until(lambda: root.exists() and any((root / name / "manifest.json").exists() for name in folders(root)), "a save", run)
    run.send(signal.SIGTERM)
    said = run.processes[0].communicate(timeout=LIMIT)[0]
    expect(run.processes[0].returncode != 0, said)
    saved = [name for name in folders(root) if (root / name / "manifest.json").exists()]
    expect(len(saved) == 2, f"{folders(root)}: {said}")


def main():
    folder = pathlib.Path(sys.argv[1])
    os.environ.update(unoptimized())
    programs = {"one": mlp(folder / "one", "fsdp=1"), "two": mlp(folder / "two", "fsdp=2")}
    run_cases((in_one_piece, a_signal_saves_and_ends, the_rest_is_bit_for_bit_the_same, the_second_one_ends_at_once,
               a_group_that_gets_it_twice_saves_once, usr1_saves_and_goes_on, without_save_a_signal_ends_as_ever,
               ranks_of_a_launcher_agree, mpirun_passes_it_on), Runs(folder / "runs", DATA), programs)


if __name__ == "__main__":
    main()
