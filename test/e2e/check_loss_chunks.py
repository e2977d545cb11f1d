#!/usr/bin/env python3
"""check_loss_chunks.py SCRATCH: --loss-chunks changes no number but by rounding, and the logits take 1/K of their bytes.

`mlp` (rows are samples) with SGD, and gpt2 and llama (rows are positions) with K that divides neither the samples of a rank nor the
positions, on 1 to 3 ranks and 2 x 2, with accumulation, rematerialization, validation on an incomplete batch, bf16; the
emulated CUDA program too, with --all. The loss of the first step has the same bits: only the order in which gradients are added up changes.
"""

import json
import os
import pathlib
import random
import sys

import emulated
import training
from check_dropout import numbers

STEPS = 4
MODELS = {
    "mlp": ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.1", "--clip=0.5", "--optimizer=sgd"],
    "gpt2": ["--layers=2", "--width=16", "--heads=2", "--context=11", "--vocab=256", "--batch=7", "--optimizer=sgd", "--lr=0.1"],
    "llama": ["--layers=2", "--width=16", "--heads=2", "--kv-heads=1", "--ffn=24", "--context=8", "--vocab=256", "--batch=6",
              "--optimizer=sgd", "--lr=0.1"],
}
# Model, mesh, options of both programs, numbers of chunks.
RUNS = (
    ("mlp", "fsdp=1", [], (2, 10)), ("mlp", "fsdp=2", [], (4,)),
    ("gpt2", "fsdp=1", ["--remat=full"], (2, 11)), ("gpt2", "fsdp=2", ["--accumulate=2"], (3,)),
    ("llama", "data=2,fsdp=2", ["--strategy=hsdp", "--prefetch=3"], (5,)),
    ("gpt2", "fsdp=2", ["--precision=bf16"], (4,)),
    ("gpt2", "fsdp=1", ["--context=30"], (30,)), # more parts than one launch concatenates
)


class Runs:
    def __init__(self, folder):
        self.folder = folder
        draw = random.Random(3)
        self.text = folder / "text.bin"
        self.text.write_bytes(bytes(draw.randrange(256) for _ in range(1200)))

    def run(self, name, model, mesh, options, compiler=None):
        program, report = self.folder / name, self.folder / f"{name}.json"
        extra = []
        if compiler:
            program = compiler(model, self.folder / name, *MODELS[model], *options, mesh=mesh)
            extra = ["--communicator=loopback"]
        else:
            training.run([training.tool(model), *MODELS[model], *options, f"--mesh={mesh}", f"--report={report}", "-o", program])
        golden = training.GOLDEN / "mlp"
        data = golden / "data.safetensors" if model == "mlp" else self.text
        weights = program.parent / f"{name}.safetensors"
        log = program.parent / f"{name}.jsonl"
        training.run([program, "--data", data, "--steps", STEPS, "--seed=3", "--val-data", data, "--eval-every", 2,
                      "--log", log, "--export", weights, *extra])
        return log, weights, {} if compiler else json.loads(report.read_text())

    def compare(self, got, expected, loss, weights):
        training.compare_log(got[0], expected[0], f"--loss={loss}", f"--grad_norm={10 * loss}", f"--steps={STEPS}")
        training.compare_weights(got[1], expected[1], f"--absolute={weights}")
        for a, b in zip(numbers(got[0], "val_loss"), numbers(expected[0], "val_loss"), strict=True):
            if abs(a - b) > loss * abs(b):
                sys.exit(f"{got[0]}: got a validation loss of {a}, expected {b}")
        first, whole = numbers(got[0], "loss")[0], numbers(expected[0], "loss")[0]
        if first != whole:
            sys.exit(f"{got[0]}: got a first loss of {first}, expected the bits of {whole}")


def main(scratch):
    os.environ.update(training.unoptimized())
    runs = Runs(pathlib.Path(scratch))
    for number, (model, mesh, options, chunks) in enumerate(training.chosen(RUNS, 1, 4)):
        whole = runs.run(f"whole-{number}", model, mesh, options)
        close = (1e-2, 1e-2) if "--precision=bf16" in options else (2e-6, 1e-5)
        for count in chunks:
            parts = runs.run(f"parts-{number}-{count}", model, mesh, [*options, f"--loss-chunks={count}"])
            runs.compare(parts, whole, *close)
    if training.WHOLE:
        whole = runs.run("whole-cuda", "gpt2", "fsdp=2", [])
        runs.compare(runs.run("cuda", "gpt2", "fsdp=2", ["--loss-chunks=2"], emulated.compile_model), whole, 2e-6, 1e-5)
    # A large vocabulary: 7 samples of 11 positions on a rank, in f32.
    large = ["--layers=1", "--width=8", "--heads=2", "--context=11", "--vocab=9000", "--batch=7", "--mesh=fsdp=1"]
    arenas = {}
    for count in (1, 7):
        report = runs.folder / f"large-{count}.json"
        training.run([training.tool("gpt2"), *large, f"--loss-chunks={count}", f"--report={report}", "--emit=scheduled",
                      "-o", runs.folder / "large.mlir"])
        arenas[count] = json.loads(report.read_text())["arena"]
    saved, logits = arenas[1] - arenas[7], 7 * 11 * 9000 * 4
    weight = 8 * 9000 * 4
    # All but a seventh of the logits, for one more gradient of the weight that they are multiplied with.
    if not saved >= logits * 6 // 7 - 2 * weight:
        sys.exit(f"loss-chunks: got an arena smaller by {saved} bytes, expected about {logits * 6 // 7 - weight}")


main(*sys.argv[1:])
