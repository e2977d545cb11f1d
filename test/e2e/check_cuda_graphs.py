#!/usr/bin/env python3
"""check_cuda_graphs.py SCRATCH MODEL: FSDP_GRAPH=1 launches each segment of a CUDA program as one graph, and changes no bit.

Emulated, on one rank and on two with NCCL. Steps in two microbatches, with dropout in gpt2, a schedule, evaluations and checkpoints
in between: logs, exported weights and every file of every checkpoint are those of a run without graphs, whatever order streams and
nodes of a graph run in. A run that continues from a checkpoint is compared too. Each segment is captured once, after the first run of its
plan, and launched in each later one. Updates that the next step performs (--defer-updates) leave streams that are not joined.
"""

import os
import pathlib
import re
import sys

import check_cuda
import emulated
import training
from checkpoints import Runs, expect, folders, logged, run_cases, same, same_checkpoint

STEPS = 5
SAVED = ["step-00000002", "step-00000004", "step-00000005"]


def environment(mode, ranks, graphs):
    return {**os.environ, "FSDP_EMULATOR": f"products=split,graphs,leaks,devices={ranks},{mode}", "FSDP_GRAPH": str(int(graphs))}


def launched(said):
    """(graphs, launches) of a run."""
    return tuple(map(int, re.search(r"cuda emulator: (\d+) graphs, launched (\d+) times", said).groups()))


class Job:
    def __init__(self, folder, model, ranks, *options):
        sizes, self.init, data = check_cuda.inputs(model)
        self.ranks = ranks
        self.program = emulated.compile_model(model, folder / f"program-{len(options)}", *sizes, *options, ranks=ranks, nccl=ranks > 1)
        self.runs = Runs(folder / f"runs-{ranks}-{len(options)}", data, "--val-data", data, "--eval-every", 2, "--schedule=cosine", "--warmup=2")

    def run(self, name, mode, graphs, *words):
        """(what it said, log, weights, checkpoints)"""
        log, weights, root = (self.runs.at(f"{name}{suffix}") for suffix in (".jsonl", ".safetensors", ""))
        start = words or ("--init", self.init)
        said = self.runs.run(self.program, *start, "--log", log, "--export", weights, "--save", root, "--save-every", 2,
                             env=environment(mode, self.ranks, graphs), steps=STEPS)
        return said, log, weights, root

    def check(self):
        said, log, weights, root = self.run("streams", "inline", False)
        expect(launched(said) == (0, 0), said)
        expect(folders(root) == SAVED, folders(root))
        modes = ("inline", "deferred,shuffle,seed=1", "deferred,shuffle,seed=2")
        for number, mode in enumerate(training.chosen(modes, 0, 1)):
            said, own_log, own_weights, own_root = self.run(f"graphs-{number}", mode, True)
            graphs, launches = launched(said)
            # Of training and of evaluation. Steps 2 to 5 of two microbatches and more, and evaluation 2, are launches.
            expect(graphs >= 2 * self.ranks and launches >= (2 * 4 + 1) * self.ranks, said)
            again = said
            expect(logged(own_log) == logged(log), f"{mode}: another log than without graphs")
            same(own_weights, weights, mode)
            for step in SAVED:
                same_checkpoint(own_root / step, root / step, f"{mode}, {step}")
        said, _, own_weights, own_root = self.run("resumed", "deferred,seed=3", True, "--resume", root / SAVED[0])
        expect(launched(said)[0] == launched(again)[0], said)
        same(own_weights, weights, "resumed")
        same_checkpoint(own_root / SAVED[-1], root / SAVED[-1], "resumed")


def one_rank(folder, model, options):
    Job(folder, model, 1, *options).check()


def two_ranks(folder, model, options):
    Job(folder, model, 2, *options).check()


def deferred_updates(folder, model, options):
    Job(folder, model, 2, *options, "--defer-updates=on").check()


def main(scratch, model):
    os.environ.update(training.unoptimized())
    options = ["--accumulate=2", *(["--dropout=0.2"] if model == "gpt2" else [])]
    run_cases(training.chosen((one_rank, two_ranks, deferred_updates), *((1,) if model == "llama" else (0, 1))), pathlib.Path(scratch), model, options)


if __name__ == "__main__":
    main(*sys.argv[1:])
