#!/usr/bin/env python3
"""check_language_meshes.py SCRATCH MODEL: however a language model is stored, its steps are the same.

Thirty steps of replicated, hybrid, never resharded, partly replicated and dimension-sharded
parameters agree with Hugging Face's model to 2e-6 in loss and 2e-5 in gradient norm (with each other
so, too); how far gathers run ahead changes no bit.
"""

import json
import os
import pathlib
import sys

import training

PLACEMENTS = {
    "gpt2": [("fsdp=3", "--strategy=ddp"), ("data=2,fsdp=2", "--strategy=hsdp"),
             ("fsdp=3", "--shard=*wte*:0", "--shard=*c_attn.weight:1", "--shard=*ln*:replicated")],
    "llama": [("data=3,fsdp=2", "--strategy=hsdp"), ("fsdp=2", "--min-shard-size=100"),
              ("fsdp=3", "--reshard-after-forward=never", "--shard=*lm_head*:0")],
}


def main(scratch, model):
    os.environ.update(training.unoptimized_in_each_check())
    goldens = training.GOLDEN / model
    golden = json.loads((goldens / "adamw.json").read_text())
    sizes = [f"--{name}={size}" for name, size in golden["sizes"].items()]
    options = [*sizes, f"--batch={golden['batch']}", *golden["options"]]
    inputs = (golden["steps"], goldens / "init.safetensors", goldens / "tokens.bin")

    def train(name, mesh, *placement):
        folder = pathlib.Path(scratch) / name
        program = training.compile_model(model, folder, *options, *placement, mesh=mesh)
        log, weights = training.train(program, name, *inputs)
        training.compare_log(log, goldens / "adamw.json", f"--steps={golden['steps']}", "--loss=2e-6",
                             "--grad_norm=2e-5")
        return log, weights

    for number, (mesh, *placement) in enumerate(PLACEMENTS[model]):
        train(f"placement-{number}", mesh, *placement)
    log, weights = train("prefetch-0", "fsdp=2", "--prefetch=0")
    ahead, weights_ahead = train("prefetch-3", "fsdp=2", "--prefetch=3")
    training.compare_log(ahead, log, "--loss=0", "--grad_norm=0")
    training.same_bytes(weights_ahead, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
