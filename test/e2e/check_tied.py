#!/usr/bin/env python3
"""check_tied.py SCRATCH: a tied weight whose gradient is reduced once trains as on one rank.

gpt2 with --tied-gradients=once, one program of several plans: the losses of 2 and 4 ranks are those of one, where nothing is reduced. In f32 with
fsdp and hsdp; in bf16 with zero1 and microbatches, each of which reduces.
"""

import os
import pathlib
import random
import sys

import training

STEPS = 5
MODEL = ["--layers=1", "--width=16", "--heads=2", "--context=8", "--vocab=256", "--batch=8", "--clip=0.5", "--lr=1e-2"]
PROGRAMS = (
    ("f32", "data=1,fsdp=1|data=1,fsdp=2|data=2,fsdp=2", ["--strategy=hsdp"], ("2e-6", "2e-5")),
    ("bf16", "fsdp=1|fsdp=2", ["--precision=bf16", "--strategy=zero1", "--accumulate=2", "--accumulate-reduce=each"], ("5e-3", "2e-2")),
)


def main(scratch):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(7)
    text = folder / "text.bin"
    text.write_bytes(bytes(draw.randrange(256) for _ in range(3000)))
    for name, meshes, options, (loss, norm) in PROGRAMS:
        program = folder / f"gpt2-{name}"
        training.run([training.tool("gpt2"), *MODEL, *options, f"--mesh={meshes}", "--tied-gradients=once", "-o", program])
        logs = []
        for mesh in meshes.split("|"):
            log = folder / f"{name}-{len(logs)}.jsonl"
            training.run([program, f"--plan={mesh}", "--data", text, "--steps", STEPS, "--seed=3", "--log", log])
            logs.append(log)
            training.compare_log(log, logs[0], f"--loss={loss}", f"--grad_norm={norm}", f"--steps={STEPS}")


if __name__ == "__main__":
    main(*sys.argv[1:])
