#!/usr/bin/env python3
"""check_kills.py SCRATCH [--kills=N] [--seed=S]: SIGKILL at random moments of random ranks, of all, of the parent.

A run of two ranks that saves every few steps is killed, and goes on from its last checkpoint, until it has done all its steps; then
another one begins. Each time: the run goes on from a checkpoint of a step not before the last one that was seen complete; no process
of the run is left; no segment of memory is left in /dev/shm; the folder of checkpoints holds no more than --keep, one unfinished and one
under way. At the end log and weights are those of the run that nobody killed, bit for bit.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from checkpoints import LIMIT, Runs, expect, folders, logged, mlp, run_cases, same
from ports import free_port
from training import GOLDEN, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
STEPS, KEEP = 400, 2


def processes_of(program):
    """Those that run `program`, zombies apart."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(program):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def shared_segments():
    """Segments, that is: what a rank that is killed while the ranks of a launcher meet leaves is a note of where to meet, of a few KiB."""
    found = set()
    for entry in os.scandir("/dev/shm") if os.path.isdir("/dev/shm") else ():
        try:
            if entry.name.startswith("fsdp-") and entry.stat().st_size > 2**16:
                found.add(entry.name)
        except FileNotFoundError:
            pass
    return found


class Killer:
    def __init__(self, runs, program, chance):
        self.runs, self.program, self.chance = runs, program, chance
        self.root, self.log, self.out = runs.at("root"), runs.at("log.jsonl"), runs.at("out.safetensors")
        self.segments = shared_segments()
        self.counts = {}
        self.seconds = 1.0  # the approximate time of a run

    def start(self, launched):
        words = self.runs.command(self.program, "--save", self.root, "--save-every", self.every, "--keep", KEEP, "--resume=latest",
                                  "--log", self.log, "--export", self.out, "--shuffle", "--flight-record=none",
                                  *self.behind, steps=STEPS)
        if not launched:
            return [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)]
        port, job = str(free_port()), f"kills-{os.getpid()}-{self.chance.random()}"
        ranks = []
        for rank in range(2):
            environment = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "FSDP_JOB_ID": job,
                           "FSDP_TIMEOUT": "20"}  # for one whose peer was killed before they met: no launcher ends it here
            ranks.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                          env={**os.environ, **environment}))
        return ranks

    def kill(self, started):
        """Kills something; returns what, or nothing where all have ended."""
        victims = processes_of(self.program)
        if not victims:
            return None
        what = self.chance.choice(("one", "all", "first"))
        if what == "first":
            victims = [started[0].pid]
        elif what == "one":
            victims = [self.chance.choice(victims)]
        for victim in victims:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return what

    def saved(self):
        if not self.root.exists():
            return []
        return [name for name in folders(self.root) if (self.root / name / "manifest.json").exists()]

    def checked(self, said, before, hits):
        end = time.monotonic() + LIMIT
        while processes_of(self.program):
            expect(time.monotonic() < end, f"orphans: {processes_of(self.program)}: {said}")
            time.sleep(0.01)
        expect(shared_segments() <= self.segments, f"left in /dev/shm: {shared_segments() - self.segments}")
        names = folders(self.root) if self.root.exists() else []
        # Each kill may have come between a new checkpoint and the removal of older ones.
        expect(len(names) <= KEEP + 1 + hits, f"piles up: {names}")
        expect(not before or self.saved()[-1:] >= before[-1:], f"got {self.saved()}, and {before} were complete")
        resumed = re.search(r"resumed from '.*step-(\d+)'", said)
        expect(not before or not resumed or f"step-{resumed[1]}" >= before[-1], f"{before}: {said}")
        expect("altered" not in said and "begins anew" not in said or not before, f"{before}: {said}")

    def life(self, kills):
        """Runs until all steps are done; returns how many kills hit."""
        for path in (self.log, self.out):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.root, ignore_errors=True)
        self.every = self.chance.choice((3, 10, 40))
        self.behind = self.chance.choice(([], ["--save-async"]))
        hits = 0
        while True:
            before, begin = self.saved(), time.monotonic()
            started = self.start(launched=self.chance.random() < 0.12)
            what = None
            if hits < kills:
                try:
                    started[0].wait(self.chance.uniform(0, self.seconds))
                except subprocess.TimeoutExpired:
                    what = self.kill(started)
            said = "".join(process.communicate(timeout=LIMIT)[0] for process in started)
            self.checked(said, before, hits + bool(what))
            if what:
                hits += 1
                self.counts[what] = self.counts.get(what, 0) + 1
            elif any(process.returncode for process in started):
                expect(False, f"nobody killed it: {said}")
            if all(process.returncode == 0 for process in started):
                self.seconds = max(0.3, 0.8 * self.seconds + 0.2 * (time.monotonic() - begin))
                break
        # One that began before the last step has saved, and removed what kills had left.
        if f"step-{STEPS:08}" not in before:
            expect(len(folders(self.root)) == KEEP, f"piles up: {folders(self.root)}")
        same(self.out, self.runs.at("whole.safetensors"), "weights")
        expect(logged(self.log) == logged(self.runs.at("whole.jsonl")), "another log")
        return hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.update(unoptimized())
    program = mlp(arguments.scratch / "program", "fsdp=2").resolve()
    runs = Runs(arguments.scratch / "runs", DATA)

    def killed_runs_end_as_others():
        runs.run(program, "--shuffle", "--log", runs.at("whole.jsonl"), "--export", runs.at("whole.safetensors"), steps=STEPS)
        killer, hits, lives = Killer(runs, program, random.Random(arguments.seed)), 0, 0
        while hits < arguments.kills:
            hits += killer.life(min(12, arguments.kills - hits))
            lives += 1
            if lives % 20 == 0 or hits == arguments.kills:
                print(f"{hits} kills ({killer.counts}) in {lives} runs of {STEPS} steps: all ended as the one that nobody killed",
                      flush=True)

    run_cases((killed_runs_end_as_others,))


if __name__ == "__main__":
    main()
