#!/usr/bin/env python3
"""check_plans_cuda.py SCRATCH: the emulated CUDA program with several plans; each is bit for bit that of its mesh alone."""

import os
import pathlib
import sys

import emulated
import training
from checkpoints import Runs, expect, logged, run_cases, same

OPTIONS = ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.05", "--optimizer=adamw", "--clip=1"]
PLANS = ("fsdp=2", "data=2", "fsdp=3")


def each_plan_is_the_program_of_its_mesh(runs, several, alone):
    inline = {**os.environ, "FSDP_EMULATOR": "inline"}
    for mesh, program in alone.items():
        for name, words in (("plan", ("--plan", mesh)), ("alone", ())):
            runs.run(program if name == "alone" else several, "--log", runs.at(f"{name}.jsonl"), "--export", runs.at(f"{name}.safetensors"),
                     *words, env=inline, says=f"mesh {mesh}, arena")
        same(runs.at("plan.safetensors"), runs.at("alone.safetensors"), mesh)
        expect(logged(runs.at("plan.jsonl")) == logged(runs.at("alone.jsonl")), f"{mesh}: another log")
    runs.run(several, env=inline, says="2 ranks, mesh fsdp=2, arena")


def main():
    folder = pathlib.Path(sys.argv[1])
    several = emulated.compile_model("mlp", folder / "several", *OPTIONS, mesh="|".join(PLANS))
    alone = {mesh: emulated.compile_model("mlp", folder / mesh, *OPTIONS, mesh=mesh) for mesh in PLANS}
    run_cases((each_plan_is_the_program_of_its_mesh,),
              Runs(folder / "runs", training.GOLDEN / "mlp" / "data.safetensors", "--communicator=loopback"), several, alone)


if __name__ == "__main__":
    main()
