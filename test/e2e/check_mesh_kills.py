#!/usr/bin/env python3
"""check_mesh_kills.py SCRATCH LIBRARY context|pipeline [--lives=N] [--seed=S]: runs on meshes with that axis that lose ranks continue, from 8 ranks to 4 and 3.

SIGKILL comes in the middle of a step (at a random moment between two lines of the log) and in the middle of a checkpoint (before a rank's writing
to a file of it, or before the new name of its manifest; LIBRARY: test/faults). With --elastic each restart is on fewer ranks, and
losses of all steps and the weights at the end are those of the run on 8 ranks that nobody killed, to 2e-6; without it, on the same mesh, bit for bit. Another run goes
from mesh to mesh by --resume; with `pipeline`, a further one in the opposite direction.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import faulty
import training
from check_kills import processes_of
from check_plans import LIMIT, launched
from checkpoints import Runs, close, expect, folders, lines_of, logged, run_cases, same, until_hit

STEPS, EVERY, RANKS = 36, 6, (8, 4, 3)
SIZES = ("--layers=2", "--width=32", "--heads=4", "--context=24", "--vocab=61", "--batch=12")
OPTIONS = ("--lr=0.01", "--eps=1e-4", "--clip=0.5", "--warmup=2", "--schedule=cosine")
# By heads where they divide, else in a ring, with gathered keys and values; parameters on all ranks of `fsdp` and `context`, or copies.
CASES = {
    "context": {
        "gpt2": ("gpt2", "fsdp=2,context=2,tensor=2|fsdp=2,context=2|context=3", ()),
        "llama": ("llama", "fsdp=2,context=4|data=2,context=2|context=3", ("--kv-heads=2", "--ffn=40", "--context-attention=ring", "--remat=full")),
        "gather": ("gpt2", "context=8|fsdp=2,context=2|context=3", ("--context-attention=gather", "--strategy=zero1", "--accumulate=2")),
    },
    # With the axis and without it, in stages of one unit or more.
    "pipeline": {
        "stages": ("gpt2", "pipeline=4,fsdp=2|pipeline=2,fsdp=2|fsdp=3", ("--accumulate=4",)),
        "none-at-first": ("gpt2", "fsdp=8|pipeline=2,fsdp=2|pipeline=3", ("--accumulate=4", "--pipeline-schedule=zb", "--remat=full")),
        "eight": ("llama", "pipeline=8|pipeline=2,data=2|data=3", ("--layers=6", "--kv-heads=2", "--ffn=40", "--strategy=ddp", "--accumulate=2")),
        "interleaved": ("llama", "pipeline=2,tensor=2,fsdp=2|pipeline=2,fsdp=2|fsdp=3",
                        ("--kv-heads=2", "--ffn=40", "--accumulate=4", "--pipeline-schedule=interleaved:2")),
    },
}
OF_EACH_CHECK = {"context": "llama", "pipeline": "stages"}
WITHIN = 2e-6


def step(number):
    return f"step-{number:08d}"


class Case:
    def __init__(self, folder, name, case, chance, library):
        model, meshes, options = case
        self.name, self.chance, self.library = name, chance, library
        self.program = training.compile_model(model, folder / "program", *SIZES, *OPTIONS, *options, mesh=meshes).resolve()
        self.meshes = meshes.split("|")
        self.runs = Runs(folder / "runs", training.GOLDEN / model / "tokens.bin", "--seed=5", "--shuffle", "--flight-record=none")
        self.root, self.log, self.out = (self.runs.at(file) for file in ("root", "log.jsonl", "out.safetensors"))
        self.runs.run(self.program, "--log", self.runs.at("whole.jsonl"), "--export", self.runs.at("whole.safetensors"), steps=STEPS)
        self.whole = logged(self.runs.at("whole.jsonl"))
        self.kills = {"step": 0, "checkpoint": 0}

    def fault(self, attempt, ranks, of):
        """That a rank of an attempt dies in the middle of the checkpoint of step `of`. Between attempts the parent forks one process more."""
        first = sum(ranks[:attempt]) + attempt
        if self.chance.random() < 0.25:
            return f"{first} rename 1 kill {step(of)}/manifest.json"
        return f"{first + self.chance.randrange(ranks[attempt])} pwrite 1 kill {step(of)}"

    def life(self, elastic):
        """One run that is killed twice."""
        for path in (self.log, self.out):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.root, ignore_errors=True)
        ranks = RANKS if elastic else (8, 8, 8)
        kinds = [self.chance.choice(("step", "checkpoint")) for _ in range(2)]
        kinds[self.chance.randrange(2)] = "checkpoint"  # the library says for sure when
        after = [self.chance.choice((6, 12)), self.chance.choice((18, 24, 30))]
        faults = [self.fault(attempt, ranks, after[attempt]) for attempt in range(2) if kinds[attempt] == "checkpoint"]
        words = self.runs.command(self.program, "--save", self.root, "--save-every", EVERY, "--keep", 2, "--max-restarts", 2,
                                  *(["--elastic"] if elastic else []), *self.chance.choice(([], ["--save-async"])),
                                  "--log", self.log, "--export", self.out, steps=STEPS)
        run = subprocess.Popen(words, env=faulty.environment(self.library, *faults), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        hits = all(self.kill_in_a_step(run, ranks[attempt], after[attempt]) for attempt in range(2) if kinds[attempt] == "step")
        said = run.communicate(timeout=LIMIT)[0]
        if run.returncode == 0 and not (hits and said.count(": restart ") == 2):
            return None
        self.check(said, run.returncode, elastic)
        for kind in kinds:
            self.kills[kind] += 1
        return said

    def kill_in_a_step(self, run, ranks, after):
        """Kills one of the ranks at a random moment of a step after that one; whether it has."""
        while run.poll() is None:
            alive = [process for process in processes_of(self.program) if process != run.pid]
            if len(alive) == ranks and lines_of(self.log) > after and lines_of(self.log) < STEPS - 1:
                time.sleep(self.chance.uniform(0, 0.03))
                try:
                    os.kill(self.chance.choice(alive), signal.SIGKILL)
                except ProcessLookupError:
                    return False
                return True
            time.sleep(0.001)
        return False

    def check(self, said, status, elastic):
        expect(status == 0, f"{self.name}: got status {status}: {said}")
        for number, mesh in enumerate(self.meshes[1:], 1):
            text = f"restart {number} of 2" + (f", on the mesh {mesh}" if elastic else "")
            expect(text in said, f"{self.name}: lacking '{text}' in: {said}")
        expect(not processes_of(self.program), f"{self.name}: {processes_of(self.program)} still run: {said}")
        names = [name for name in folders(self.root) if not (self.root / name / "manifest.json").exists()]
        expect(not names, f"{self.name}: {names} are left without a manifest: {said}")
        got = logged(self.log)
        expect([line["step"] for line in got] == list(range(1, STEPS + 1)), f"{self.name}: steps are missing or stand twice: {said}")
        if elastic:
            close(self.whole, got, WITHIN, self.name)
            training.compare_weights(self.out, self.runs.at("whole.safetensors"), f"--absolute={WITHIN}")
        else:
            same(self.out, self.runs.at("whole.safetensors"), "weights")
            expect(got == self.whole, f"{self.name}: another log: {said}")


def ranks_are_lost(cases, lives):
    for case in cases:
        for number in range(lives):
            until_hit(lambda: case.life(elastic=number % 3 != 2))
        print(f"{case.name}: {lives} runs were killed {case.kills['step']} times in a step and {case.kills['checkpoint']} times in a checkpoint")


def meshes_follow_one_another(cases, lives):
    """By --resume, on 8, 4 and 3 ranks that a launcher starts."""
    for case in cases:
        legs = list(zip(RANKS, case.meshes, strict=True))
        follow(case, "down", legs)
        if any("pipeline" in mesh for mesh in case.meshes):
            follow(case, "up", legs[::-1])


def follow(case, name, legs):
    third, start = STEPS // 3, ()
    for leg, (ranks, mesh) in enumerate(legs):
        root, log = case.runs.at(f"{name}-{leg}"), case.runs.at(f"{name}-{leg}.jsonl")
        said, statuses = launched(case.runs, case.program, ranks, "--save", root, "--save-every", third, "--log", log, *start, steps=STEPS)
        expect(statuses == [0] * ranks and f"mesh {mesh}" in said, f"{case.name}, {ranks} ranks: {statuses}: {said}")
        got = logged(log)
        expect([line["step"] for line in got] == list(range(third * leg + 1, STEPS + 1)), f"{case.name}, {ranks} ranks: other steps")
        close(case.whole, got, WITHIN, f"{case.name}, {ranks} ranks")
        start = ("--resume", root / step(third * (leg + 1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("axis", choices=CASES)
    parser.add_argument("--lives", type=int, default=10 if training.WHOLE else 1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.update(training.unoptimized())
    chance = random.Random(arguments.seed)
    cases = [Case(arguments.scratch / name, name, case, chance, arguments.library)
             for name, case in training.chosen(CASES[arguments.axis], OF_EACH_CHECK[arguments.axis]).items()]
    run_cases((ranks_are_lost, meshes_follow_one_another), cases, arguments.lives)


if __name__ == "__main__":
    main()
