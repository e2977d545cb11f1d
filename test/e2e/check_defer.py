#!/usr/bin/env python3
"""check_defer.py SCRATCH: updates that are deferred to the next step change no bit.

`mlp`, `gpt2` (tied weights, dropout, recomputation, bf16) and `frozen` are trained with --defer-updates=on and off: with every optimizer,
clipping, one and several microbatches, on 1 to 4 ranks and 2 x 2, with evaluations between steps. Logs (losses, norms,
rates, validation) and exported weights are equal, as are, with --all, those of the emulated CUDA program; the measured peak is the planned arena. A run that
ends after each number of steps has performed every update. Three steps in a row that are not finite end both with the same message.
"""

import json
import os
import pathlib
import random
import subprocess
import sys

import emulated
import training
from check_refusals import write

STEPS = 5
EXACT = ("loss", "grad_norm", "lr", "accuracy", "val_loss", "val_accuracy")
MLP = ["--in=12", "--hidden=17", "--classes=10", "--batch=10"]
RUNS = (
    ("fsdp=1", ["--optimizer=sgd", "--lr=0.1"]),
    ("fsdp=2", ["--optimizer=adamw", "--clip=0.5", "--warmup=3", "--schedule=cosine"]),
    ("fsdp=3", ["--optimizer=adam", "--accumulate=3", "--prefetch=0"]),
    ("fsdp=4", ["--optimizer=sgd", "--momentum=0.9", "--accumulate=2", "--accumulate-reduce=last", "--clip=0.1"]),
    ("data=2,fsdp=2", ["--strategy=hsdp", "--prefetch=3"]),
    ("data=2", ["--strategy=ddp", "--clip=1", "--accumulate=4"]),
    ("fsdp=2", ["--shard=*.weight:0", "--min-shard-size=30", "--reshard-after-forward=never"]),
)


def compile_and_train(folder, model, mesh, options, data, init, *extra, steps=STEPS, compiler=None):
    """The lines of the log, without what is measured, and the exported weights."""
    folder.mkdir(parents=True, exist_ok=True)
    program, report = folder / "train", folder / "report.json"
    if compiler:
        program = compiler(model, folder, *options, mesh=mesh)
        extra = [*extra, "--communicator=loopback"]
    else:
        training.run([training.tool(model), *options, f"--mesh={mesh}", f"--report={report}", "-o", program])
    command = ["--init", init] if init else ["--seed=3"]
    log, weights = folder / f"{steps}.jsonl", folder / f"{steps}.safetensors"
    training.run([program, "--data", data, "--steps", steps, *command, "--export", weights, "--log", log, *extra])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    if not compiler and lines[-1]["peak_bytes"] != json.loads(report.read_text())["arena"]:
        sys.exit(f"{folder}: measured a peak of {lines[-1]['peak_bytes']} bytes, expected the arena of {report}")
    return [{key: line[key] for key in EXACT if key in line} for line in lines], weights


def require_same(name, got, expected):
    if got[0] != expected[0]:
        sys.exit(f"{name}: got {got[0]} with --defer-updates=on, expected {expected[0]}")
    training.same_bytes(got[1], expected[1])


def compare(folder, model, runs, data, init, *extra):
    for number, (mesh, options) in enumerate(runs):
        both = [compile_and_train(folder / f"{model}-{number}-{defer}", model, mesh,
                                  [*options, f"--defer-updates={defer}"], data, init, *extra) for defer in ("on", "off")]
        require_same(f"{model} {mesh} {options}", *both)


def check_mlp(folder):
    golden = training.GOLDEN / "mlp"
    data, init = golden / "data.safetensors", golden / "init.safetensors"
    validate = ["--val-data", data, "--eval-every", 2]
    compare(folder, "mlp", [(mesh, [*MLP, *options]) for mesh, options in training.chosen(RUNS, 1, 3, 4)], data, init, *validate)
    # Whatever the step after which a run ends, and on CUDA.
    options = [*MLP, *RUNS[1][1]]
    for steps in training.chosen((1, 2, 3), 0, 1):
        both = [compile_and_train(folder / f"ends-{defer}", "mlp", "fsdp=2", [*options, f"--defer-updates={defer}"],
                                  data, init, steps=steps) for defer in ("on", "off")]
        require_same(f"mlp, {steps} steps", *both)
    for accumulate in (1, 3) if training.WHOLE else ():
        both = [compile_and_train(folder / f"cuda-{accumulate}-{defer}", "mlp", "fsdp=2",
                                  [*options, f"--accumulate={accumulate}", f"--defer-updates={defer}"], data, init, *validate,
                                  compiler=emulated.compile_model) for defer in ("on", "off")]
        require_same(f"mlp on CUDA, {accumulate} microbatches", *both)


def check_gpt2(folder):
    draw = random.Random(7)
    text = folder / "text.bin"
    text.write_bytes(bytes(draw.randrange(256) for _ in range(2000)))
    model = ["--layers=3", "--width=16", "--heads=2", "--context=8", "--vocab=256", "--batch=7", "--dropout=0.1", "--clip=1"]
    runs = [("fsdp=2", [*model, "--remat=full"]), ("fsdp=2", [*model, "--precision=bf16", "--accumulate=3"]),
            ("fsdp=2", [*model, "--precision=bf16", "--reduce-precision=bf16", "--remat=every:2"])]
    compare(folder, "gpt2", training.chosen(runs, 2), text, None, "--val-data", text, "--eval-every", 2)


def check_frozen(folder):
    draw = random.Random(3)

    def tensor(*shape):
        count = 1
        for size in shape:
            count *= size
        return "F32", list(shape), [draw.gauss(0, 1) for _ in range(count)]

    init = write(folder / "frozen.safetensors", {"base.weight": tensor(6, 5), "base.shift.bias": tensor(5),
                                                 "head.scale": tensor(5), "head.weight": tensor(5, 3), "head.bias": tensor(3)})
    data = write(folder / "frozen-data.safetensors", {"x": tensor(14, 6), "y": tensor(14, 3)})
    compare(folder, "frozen", [("fsdp=2", ["--optimizer=adam", "--lr=0.05"])], data, init, "--val-data", data, "--eval-every", 2)


def check_bad_steps(folder):
    """The steps after the first are not finite: their updates are skipped, and the third one ends the job."""
    golden = training.GOLDEN / "mlp"
    said = []
    for defer in ("on", "off"):
        program = training.compile_model("mlp", folder / f"bad-{defer}", *MLP, "--optimizer=sgd", "--lr=1e38",
                                         f"--defer-updates={defer}", ranks=2)
        done = subprocess.run([program, "--data", golden / "data.safetensors", "--init", golden / "init.safetensors",
                               "--steps", "9"], capture_output=True, text=True)
        said.append(done.stderr.partition(": got loss")[2]) # whichever rank says it
        if done.returncode != 1 or "in step 4, the last of 3 in a row" not in done.stderr or "'fc" not in done.stderr:
            sys.exit(f"bad steps with --defer-updates={defer}: got {done.returncode} and {done.stderr}, expected an error in "
                     "step 4 that names a gradient")
    if said[0] != said[1]:
        sys.exit(f"bad steps: got '{said[0]}' with --defer-updates=on, expected '{said[1]}'")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    os.environ.update(training.unoptimized())
    check_mlp(folder)
    check_gpt2(folder)
    check_frozen(folder)
    check_bad_steps(folder)


if __name__ == "__main__":
    main()
