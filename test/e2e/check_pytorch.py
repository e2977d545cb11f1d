#!/usr/bin/env python3
"""check_pytorch.py SCRATCH: tensor, sequence, context and pipeline parallelism compute what PyTorch's compute from the same weights.

Processes that are started as torchrun starts them have, in 20 steps of AdamW with clipping, the losses of PyTorch's processes to 2e-6 and
their gradient norms to 2e-5: DTensors by `parallelize_module`, with and without `SequenceParallel`, a ring of the attention of CPUs
(test/golden/make_parallel.py), and `Schedule1F1B` of `torch.distributed.pipelining` (make_pipeline.py).
"""

import json
import os
import pathlib
import sys

import training
from check_plans import launched
from checkpoints import Runs, expect, run_cases

ATTENTION = "--context-attention="
# name -> golden, mesh, ranks, options
CASES = {
    "tensor": ("tensor", "fsdp=2,tensor=2", 4, []),
    "tensor-alone": ("tensor", "tensor=2", 2, ["--sequence-parallel=off"]),
    "sequence": ("sequence", "tensor=2", 2, ["--sequence-parallel=on"]),
    "sequence-fsdp": ("sequence", "fsdp=2,tensor=2", 4, ["--sequence-parallel=on", "--remat=full"]),
    "heads": ("context", "context=2", 2, [f"{ATTENTION}all-to-all"]),
    "ring": ("context", "context=2", 2, [f"{ATTENTION}ring"]),
    "ring-4": ("context", "context=4", 4, [f"{ATTENTION}ring", "--remat=selective"]),
    "gather": ("context", "context=2", 2, [f"{ATTENTION}gather"]),
    "pipeline": ("pipeline", "pipeline=2", 2, ["--accumulate=3"]),
    "pipeline-fsdp": ("pipeline", "pipeline=2,fsdp=2", 4, ["--accumulate=3", "--pipeline-schedule=zb"]),
    "pipeline-tensor": ("pipeline", "pipeline=2,tensor=2", 4, ["--accumulate=3", "--remat=full"]),
    "both": ("context", "context=2,tensor=2", 4, [f"{ATTENTION}ring", "--sequence-parallel=on"]),
}
OF_EACH_CHECK = {"gpt2": ("tensor", "sequence", "ring", "pipeline"), "llama": ("tensor", "sequence", "heads", "pipeline")}


def losses_are_those_of_pytorch(folder, model):
    goldens = training.GOLDEN / model
    of = json.loads((goldens / "adamw.json").read_text())
    sizes = [*(f"--{name}={size}" for name, size in of["sizes"].items()), f"--batch={of['batch']}", *of["options"]]
    for name, (golden, mesh, ranks, options) in training.chosen(CASES, *OF_EACH_CHECK[model]).items():
        golden = goldens / f"{golden}.json"
        steps = json.loads(golden.read_text())["steps"]
        program = training.compile_model(model, folder / f"{model}-{name}", *sizes, *options, mesh=mesh)
        runs = Runs(program.parent, goldens / "tokens.bin")
        said, statuses = launched(runs, program, ranks, "--init", goldens / "init.safetensors", "--log", runs.at("log.jsonl"), steps=steps)
        expect(statuses == [0] * ranks, f"{model}, {name}: got {statuses}: {said}")
        print(f"{model}, {name}: ", end="")
        training.compare_log(runs.at("log.jsonl"), golden, "--loss=2e-6", "--grad_norm=2e-5", f"--steps={steps}")


def main():
    os.environ.update(training.unoptimized())
    for model in OF_EACH_CHECK:
        run_cases((losses_are_those_of_pytorch,), pathlib.Path(sys.argv[1]), model)


if __name__ == "__main__":
    main()
