#!/usr/bin/env python3
"""check_cuda_tune.py SCRATCH: FSDP_TUNE=1 chooses algorithms of products by their times, the same on every rank, and keeps them.

gpt2, emulated, on two ranks with NCCL. Of the four algorithms that the emulated cuBLASLt proposes, each with another order of sums, the
setting `fastest` says which takes the least time. Another choice gives other bits; a second run takes the choices of the cache, and a run
that continues from a checkpoint takes those of the checkpoint, even if another algorithm is faster then: both have the bits of the first.
Damaged files of the cache are ignored with one message, and replaced.
"""

import json
import os
import pathlib
import re
import sys

import check_cuda
import emulated
import training
from checkpoints import Runs, expect, logged, run_cases, same

RANKS, STEPS = 2, 6
CHOICE = re.compile(r"^product (\d+ x \d+ x \d+, \w+ to \w+, plan [-\d ]+): algorithm (\d) of 4, ", re.M)


class Job:
    def __init__(self, folder):
        sizes, self.init, data = check_cuda.inputs("gpt2")
        self.program = emulated.compile_model("gpt2", folder / "program", *sizes, ranks=RANKS, nccl=True)
        self.runs = Runs(folder / "runs", data)
        self.cache = folder / "cache"

    def run(self, name, fastest, *words, tune=True, cache=None, **options):
        """(what it said, log, weights)"""
        log, weights = self.runs.at(f"{name}.jsonl"), self.runs.at(f"{name}.safetensors")
        environment = {**os.environ, "FSDP_EMULATOR": f"devices={RANKS},leaks,fastest={fastest}", "FSDP_TUNE": str(int(tune)),
                       "FSDP_TUNE_CACHE": str(self.cache if cache is None else cache)}
        said = self.runs.run(self.program, *(words or ("--init", self.init)), "--log", log, "--export", weights, env=environment, steps=STEPS,
                             **options)
        return said, log, weights

    def checkpoint(self):
        return self.runs.at("saved") / "step-00000003"


def chosen_once_for_all_ranks(job):
    said, log, weights = job.run("first", 2, "--init", job.init, "--save", job.runs.at("saved"), "--save-every", 3)
    choices = dict(CHOICE.findall(said))
    expect(len(choices) > 10 and set(choices.values()) == {"2"} and len(CHOICE.findall(said)) == len(choices), said)
    expect(len(list(job.cache.iterdir())) == len(choices), f"{len(choices)} choices, and {list(job.cache.iterdir())}")
    kept = json.loads((job.checkpoint() / "manifest.json").read_text())["products"]
    expect(kept["machine"] == "CPU emulating CUDA (9.0), cuBLASLt 130100", kept["machine"])
    expect({name: str(number) for name, number in kept["algorithms"].items()} == choices, kept)
    for name, fastest, tune in (("other", 1, True), ("untuned", 2, False)):
        said, _, other = job.run(name, fastest, tune=tune, cache="")
        expect(bool(CHOICE.search(said)) == tune, said)
        expect(other.read_bytes() != weights.read_bytes(), f"{name}: got the same bits by other algorithms")


def kept_in_the_cache(job):
    said, log, weights = job.run("cached", 1)
    expect(not CHOICE.search(said) and "note: " not in said, said)
    same(weights, job.runs.at("first.safetensors"), "choices of the cache")
    expect(logged(log) == logged(job.runs.at("first.jsonl")), "another log")


def kept_in_checkpoints(job):
    """Also where the cache has other choices."""
    cache = job.runs.at("other-cache")
    job.run("elsewhere", 1, cache=cache)
    said, _, weights = job.run("resumed", 3, "--resume", job.checkpoint(), cache=cache)
    expect(not CHOICE.search(said), said)
    same(weights, job.runs.at("first.safetensors"), "choices of the checkpoint")
    said, _, weights = job.run("resumed-untuned", 3, "--resume", job.checkpoint(), tune=False)
    expect(weights.read_bytes() != job.runs.at("first.safetensors").read_bytes(), "got the same bits without FSDP_TUNE")


def damaged_files_are_replaced(job):
    for path in job.cache.iterdir():
        path.write_text("fsdpc product 1\n")
    said, _, weights = job.run("damaged", 2)
    expect(said.count("got other text than the choice of one of 4 algorithms") == 1 and len(CHOICE.findall(said)) > 10, said)
    same(weights, job.runs.at("first.safetensors"), "measured again")
    said, _, weights = job.run("replaced", 1)
    expect(not CHOICE.search(said) and "note: " not in said, said)
    same(weights, job.runs.at("first.safetensors"), "replaced")


def main(scratch):
    os.environ.update(training.unoptimized())
    run_cases((chosen_once_for_all_ranks, kept_in_the_cache, kept_in_checkpoints, damaged_files_are_replaced), Job(pathlib.Path(scratch)))


if __name__ == "__main__":
    main(*sys.argv[1:])
