#!/usr/bin/env python3
"""check_pipeline.py SCRATCH: what a pipeline computes depends on neither its schedule nor its stages, to the bit.

Five steps of AdamW with clipping have the losses, gradient norms and weights of one program for each order of microbatches and each division
into stages, gpt2 with its table in two stages too, and over TCP and MPI; those of llama, without tied weights, are those of the same mesh without
`pipeline`.
"""

import os
import pathlib
import shutil
import sys

import training
from check_tensor import SIZES, Runs

STEPS = 5
# Mesh besides `pipeline=2`, options of all its programs.
MESHES = {
    "fsdp": ("fsdp=2", ["--accumulate=4"]),
    "uneven": ("fsdp=2", ["--accumulate=6", "--reshard-after-forward=never", "--accumulate-reduce=last"]),  # 8 samples
    "ddp": ("data=2", ["--accumulate=2", "--strategy=ddp"]),
    "zero2": ("fsdp=2", ["--accumulate=4", "--strategy=zero2", "--remat=full"]),
    "tensor": ("tensor=2", ["--accumulate=4", "--sequence-parallel=on"]),
    "context": ("context=2", ["--accumulate=4", "--context-attention=ring"]),
}
# Schedules with stages; the first is what others are compared with. Two layers are four units.
WAYS = {
    "1f1b": [],
    "1f1b-3-1": ["--stages=3,1"],
    "gpipe": ["--pipeline-schedule=gpipe"],
    "zb-1-3": ["--pipeline-schedule=zb", "--stages=1,3"],
    "interleaved": ["--pipeline-schedule=interleaved:2"],
    "1f1b-1-3": ["--stages=1,3"],
    "gpipe-3-1": ["--pipeline-schedule=gpipe", "--stages=3,1"],
    "zb": ["--pipeline-schedule=zb"],
}
OF_EACH_CHECK = {"gpt2": ("1f1b", "1f1b-3-1", "gpipe", "zb-1-3", "interleaved"), "llama": ("1f1b", "zb-1-3", "interleaved")}


def same(got, expected, what):
    print(f"{what}: ", end="")
    training.compare_log(got[0], expected[0], "--loss=0", "--grad_norm=0", f"--steps={STEPS}")
    training.same_bytes(got[1], expected[1])


def over_others(runs, program):
    """(transport, (log, weights)) of runs of the four ranks of `program` that share no memory."""
    log, weights = (runs.folder / f"{program.name}-tcp.{kind}" for kind in ("jsonl", "safetensors"))
    training.run_over_tcp([program, "--data", runs.data, "--steps", STEPS, "--seed=5", "--log", log, "--export", weights], 4)
    yield "tcp", (log, weights)
    if shutil.which("mpirun"):
        launcher = ("mpirun", "-n", "4", "--oversubscribe")
        yield "mpi", runs.train(program, "--communicator=mpi", name=f"{program.name}-mpi", steps=STEPS, launcher=launcher)


def check(runs, mesh, others, options, ways):
    def trained(name, mesh, *extra):
        program, _ = runs.program(f"{mesh.replace(',', '-')}-{name}", [*SIZES[runs.model], "--lr=0.01"], mesh, *options, *extra)
        return program, runs.train(program, steps=STEPS)

    program, first = trained(f"{others}-1f1b", f"pipeline=2,{mesh}")
    for name, extra in list(ways.items())[1:]:
        _, got = trained(f"{others}-{name}", f"pipeline=2,{mesh}", *extra)
        same(got, first, f"{runs.model}, {others}, {name}")
    if runs.model == "llama":
        _, got = trained(f"{others}-alone", mesh)
        same(got, first, f"{runs.model}, {others}, without pipeline")
    else:
        for transport, got in over_others(runs, program):
            same(got, first, f"{runs.model}, {others}, {transport}")


def main(scratch):
    os.environ.update(training.unoptimized())
    for model, names in OF_EACH_CHECK.items():
        runs = Runs(pathlib.Path(scratch) / model, model)
        ways = training.chosen(WAYS, *names)
        for name, (mesh, options) in training.chosen(MESHES, "fsdp").items():
            check(runs, mesh, name, options, ways)


if __name__ == "__main__":
    main(*sys.argv[1:])
