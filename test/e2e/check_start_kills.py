#!/usr/bin/env python3
"""check_start_kills.py SCRATCH LIBRARY [--kills=N] [--seed=S]: SIGKILL between a program's start and its first save.

Where a run is told to save and to log, an older run has left checkpoints and a log. The run begins anew, from --init, from a step in the same
folder or in another one, or from the latest. Its ranks are killed before a call of the system each (LIBRARY: test/faults), in the first attempt
and in those after it, or its parent is, and the command is given again. Each time: the run ends with the weights and the log of the one that
nobody killed, bit for bit; every checkpoint that was there before is whole, under its name or with a number behind it; a log that the run does not
go on in is whole as well.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess

import faulty
from checkpoints import LIMIT, Runs, close, expect, logged, mlp, run_cases, same
from training import GOLDEN, unoptimized

DATA = GOLDEN / "mlp" / "data.safetensors"
OLD = (10, 20, 30)  # steps
STEPS, EVERY = 46, 8


def step(number):
    return f"step-{number:08d}"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Before an attempt after the first, the parent forks a process that looks at the folder: rank r of attempt a is process 3 a + r.
class Start:
    """A run in a folder that an older one has used."""

    WORDS = {
        "anew": (),
        "init": ("--init", "{other}/step-00000010"),
        "step": ("--resume", "{root}/step-00000020"),
        "other": ("--resume", "{other}/step-00000020"),
        "latest": ("--resume=latest",),
    }
    FIRST = {"anew": 8, "init": 8, "step": 24, "other": 24, "latest": 32}  # steps that the run saves first

    def __init__(self, runs, library, program, kind, name=""):
        self.runs, self.library, self.program, self.kind = runs, library, program, kind
        self.folder = runs.at(f"{kind}{name}")
        self.root, self.log, self.out = self.folder / "root", self.folder / "log.jsonl", self.folder / "out.safetensors"

    def prepare(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        shutil.copytree(self.runs.at("older"), self.root)
        shutil.copy(self.runs.at("older.jsonl"), self.log)

    def words(self, *more):
        start = [word.format(root=self.root, other=self.runs.at("elsewhere")) for word in self.WORDS[self.kind]]
        return self.runs.command(self.program, "--save", self.root, "--save-every", EVERY, "--log", self.log, "--export", self.out, "--shuffle",
                                 "--flight-record=none", "--max-restarts=8", *start, *more, steps=STEPS)

    def run(self, *faults, calls=None, more=()):
        return subprocess.Popen(self.words(*more), env=faulty.environment(self.library, *faults, calls=calls), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def keep_as_expected(self):
        """Runs it without a fault; remembers results, and how many calls each process makes before the first save is complete."""
        self.prepare()
        calls = self.folder / "calls"
        run = self.run(calls=calls)
        said = run.communicate(timeout=LIMIT)[0]
        expect(run.returncode == 0, said)
        shutil.copy(self.out, self.runs.at(f"{self.kind}.expected.safetensors"))
        shutil.copy(self.log, self.runs.at(f"{self.kind}.expected.jsonl"))
        first, counts = step(self.FIRST[self.kind]), {}
        for process, made in faulty.calls_of(calls).items():
            ours = [number for number, (_, path) in enumerate(made, 1) if first in path]
            # The parent waits: its calls before its ranks start, and a few more.
            ours = ours or [number + 5 for number, (call, _) in enumerate(made, 1) if call == "waitpid"][:1]
            counts[process] = max(ours)
        return counts

    def check(self, said, status):
        expect(status == 0, f"{self.kind}: got status {status}: {said}")
        same(self.out, self.runs.at(f"{self.kind}.expected.safetensors"), f"{self.kind}: weights: {said}")
        expect(logged(self.log) == logged(self.runs.at(f"{self.kind}.expected.jsonl")), f"{self.kind}: another log: {said}")
        self.check_old(said)

    def check_old(self, said):
        """What was there before is there."""
        for number in OLD:
            was = contents(self.runs.at("older") / step(number))
            names = [path.name for path in self.root.iterdir() if path.name.split(".")[0] == step(number)]
            expect(any(contents(self.root / name) == was for name in names), f"{self.kind}: step {number} of the older run is gone: {names}: {said}")
        if self.kind in ("anew", "init"):
            kept = self.log.with_name("log.jsonl.1")
            expect(kept.exists() and kept.read_bytes() == self.runs.at("older.jsonl").read_bytes(), f"{self.kind}: the log of the older run is gone: {said}")


def prepare(runs, programs):
    runs.run(programs["two"], "--save", runs.at("older"), "--save-every", 10, "--log", runs.at("older.jsonl"), "--seed=7", "--lr=0.02", "--shuffle", steps=30)
    runs.run(programs["two"], "--save", runs.at("elsewhere"), "--save-every", 10, "--seed=9", "--lr=0.03", "--shuffle", steps=30)


# Where what is done once is half done: some of the old checkpoints renamed, the log renamed and no other there, nothing at all, and the like.
STAGES = ("0 any 1 kill", "1 any 1 kill", "0 flock 1 kill", "0 rename 1 kill", "0 rename 2 kill", "0 rename 3 kill", "0 renameat2 1 kill log.jsonl",
          "0 open 1 kill log.jsonl", "0 open 2 kill log.jsonl", "0 open 3 kill log.jsonl", "0 write 1 kill log.jsonl", "0 write 2 kill log.jsonl",
          "1 mmap 3 kill", "0 mkdir 1 kill step-000000", "0 mkdir 2 kill step-000000", "1 pwrite 1 kill step-000000",
          "0 rename 1 kill manifest.json", "0 any 1 kill;3 any 1 kill;7 any 1 kill", "0 any 1 kill;2 any 1 kill")


def each_stage_may_be_the_last(runs, programs, arguments):
    for kind in Start.WORDS:
        start = Start(runs, arguments.library, programs["two"], kind)
        start.counts = start.keep_as_expected()
        for i, fault in enumerate(STAGES):
            # All of them where files are renamed; of the others, a few: they differ in what they begin with only.
            if kind != "anew" and not arguments.long and i % 6 != list(Start.WORDS).index(kind):
                continue
            start.prepare()
            run = start.run(fault)
            start.check(run.communicate(timeout=LIMIT)[0], run.returncode)


def damage_does_not_lead_to_an_older_run(runs, programs, arguments):
    """Of what the run has saved nothing can be used when it is restarted: it goes on from what it began with, or ends where that was no checkpoint."""
    for kind in ("other", "step", "anew"):
        start, first = Start(runs, arguments.library, programs["two"], kind, "-damaged"), Start.FIRST[kind]
        start.prepare()
        # Killed in its second save: the first one is the only one.
        lost = [f"{process} open 1 ENOENT {step(first)}/model.safetensors" for process in (3, 4)]
        run = start.run(f"0 rename 1 kill {step(first + EVERY)}/manifest.json", *lost)
        said = run.communicate(timeout=LIMIT)[0]
        expect(f"{step(first)}/model.safetensors': No such file or directory" in said, f"{kind}: {said}")
        if kind != "anew":
            start.check(said, run.returncode)
            continue
        expect(run.returncode == 1 and said.count(": restart ") == 1, f"got status {run.returncode}: {said}")
        start.check_old(said)


def random_kills_end_as_no_kill(runs, programs, arguments):
    chance, hits, parents, trials = random.Random(arguments.seed), 0, 0, 0
    while hits < arguments.kills:
        kind = chance.choice(list(Start.WORDS))
        start = Start(runs, arguments.library, programs["two"], kind)
        counts = arguments.counts.setdefault(kind, None) or start.keep_as_expected()
        arguments.counts[kind] = counts
        start.prepare()
        trials += 1
        if chance.random() < 0.2:
            run = start.run(f"parent any {chance.randint(1, counts['parent'])} kill")
            said = run.communicate(timeout=LIMIT)[0]
            if run.returncode == 0:
                continue
            hits, parents = hits + 1, parents + 1
            # A process that looks only now must not find a partial state.
            run = start.run()
            start.check(said + run.communicate(timeout=LIMIT)[0], run.returncode)
        else:
            faults = []
            for attempt in range(chance.choice((1, 1, 2, 3))):
                rank = chance.randrange(2)
                faults.append(f"{3 * attempt + rank} any {chance.randint(1, counts[str(rank)])} kill")
            run = start.run(*faults)
            said = run.communicate(timeout=LIMIT)[0]
            start.check(said, run.returncode)
            hits += said.count(": restart ")
    print(f"{hits} kills ({parents} of the parent) in {trials} runs: all ended as the one that nobody killed; what was there before is whole", flush=True)


def fewer_ranks_begin_as_the_first_attempt(runs, programs, arguments):
    """With --elastic the restart has one rank: losses agree to rounding."""
    for kind, fault in (("anew", "0 rename 2 kill"), ("step", "1 any 4 kill"), ("other", "0 write 2 kill log.jsonl")):
        start = Start(runs, arguments.library, programs["plans"], kind, "-elastic")
        start.prepare()
        run = start.run(fault, more=("--elastic",))
        said = run.communicate(timeout=LIMIT)[0]
        expect(run.returncode == 0 and "restart 1 of 8, on the mesh fsdp=1" in said, f"{kind}: got status {run.returncode}: {said}")
        expected, got = logged(runs.at(f"{kind}.expected.jsonl")), logged(start.log)
        expect([line["step"] for line in got] == [line["step"] for line in expected], f"{kind}: {said}")
        close(expected, got[-STEPS + Start.FIRST[kind]:], 2e-6, kind)
        start.check_old(said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.long, arguments.counts = arguments.kills >= 100, {}
    os.environ.update(unoptimized())
    programs = {"two": mlp(arguments.scratch / "two", "fsdp=2"), "plans": mlp(arguments.scratch / "plans", "fsdp=2|fsdp=1")}
    runs = Runs(arguments.scratch / "runs", DATA)
    prepare(runs, programs)
    run_cases((each_stage_may_be_the_last, damage_does_not_lead_to_an_older_run, fewer_ranks_begin_as_the_first_attempt,
               random_kills_end_as_no_kill), runs, programs, arguments)


if __name__ == "__main__":
    main()
