#!/usr/bin/env python3
"""check_accumulate.py SCRATCH: a step in K microbatches computes what the step on the whole batch computes.

`mlp` with SGD on 10 samples: K of 2 to 5 on 1, 2, 3 ranks and 2 x 2, so that neither K nor the ranks divide the
batch; losses and validation agree to 2e-6, weights to 1e-5. On one rank reducing each microbatch or the last one
is the same bit for bit, and so is every prefetch depth. The measured peak is the planned arena. Dropout draws the masks of the
whole batch. The report agrees; with --all the emulated CUDA program does too.
"""

import json
import os
import pathlib
import random
import re
import sys

import emulated
import training
from check_branches import BATCH, WIDTH, dataset
from check_dropout import HIDDEN, initial, numbers

STEPS = 6
MLP = ["--in=12", "--hidden=17", "--classes=10", "--batch=10", "--lr=0.1", "--clip=0.5", "--optimizer=sgd"]
RUNS = (
    ("fsdp=1", 5, []), ("fsdp=2", 3, ["--accumulate-reduce=last"]),
    ("fsdp=3", 3, ["--prefetch=0"]), ("data=2,fsdp=2", 3, ["--strategy=hsdp"]),
    ("data=2", 4, ["--strategy=ddp"]), ("fsdp=2", 3, ["--shard=*.weight:0", "--min-shard-size=30"]),
)


class Mlp:
    def __init__(self, folder):
        self.folder, self.golden = folder, training.GOLDEN / "mlp"

    def run(self, name, mesh, count, options, compiler=None):
        program, report = self.folder / name, self.folder / f"{name}.json"
        options = [*MLP, *options, f"--accumulate={count}"]
        if compiler:
            program = compiler("mlp", self.folder / name, *options, mesh=mesh)
        else:
            training.run([training.tool("mlp"), *options, f"--mesh={mesh}", f"--report={report}", "-o", program])
        data = self.golden / "data.safetensors"
        extra = ["--communicator=loopback"] if compiler else []
        log, weights = training.train(program, f"{name}-run", STEPS, self.golden / "init.safetensors", data,
                                      "--val-data", data, "--eval-every", 3, *extra)
        if not compiler:
            arena = json.loads(report.read_text())["arena"]
            if numbers(log, "peak_bytes")[-1] != arena:
                sys.exit(f"{name}: measured a peak of {numbers(log, 'peak_bytes')[-1]} bytes, expected the arena, {arena}")
        return log, weights

    def compare(self, got, expected):
        training.compare_log(got[0], expected[0], "--loss=2e-6", "--grad_norm=2e-5", "--accuracy=0", f"--steps={STEPS}")
        training.compare_weights(got[1], expected[1], "--absolute=1e-5")
        for a, b in zip(numbers(got[0], "val_loss"), numbers(expected[0], "val_loss")):
            if abs(a - b) > 2e-6 * abs(b):
                sys.exit(f"{got[0]}: got a validation loss of {a}, expected {b}")


def check_mlp(folder):
    mlp = Mlp(folder)
    whole = mlp.run("whole", "fsdp=1", 1, [])
    for number, (mesh, count, options) in enumerate(training.chosen(RUNS, 1, 3, 5)):
        mlp.compare(mlp.run(f"parts-{number}", mesh, count, options), whole)
    each = mlp.run("each", "fsdp=1", 3, ["--accumulate-reduce=each"])
    for name, options in (("last", ["--accumulate-reduce=last"]), ("ahead", ["--prefetch=3"])):
        other = mlp.run(name, "fsdp=1", 3, options)
        training.same_bytes(other[1], each[1])
        if numbers(other[0], "loss") != numbers(each[0], "loss"):
            sys.exit(f"{name}: got other losses than with each microbatch reduced, expected the same bits")
    if training.WHOLE:
        mlp.compare(mlp.run("cuda", "fsdp=2", 3, [], emulated.compile_model), whole)


def check_counts(folder):
    """Gathers come K times, reductions of `last` once; updates once."""
    counts = {}
    for name, options in (("whole", []), ("each", ["--accumulate=4"]),
                          ("last", ["--accumulate=4", "--accumulate-reduce=last"])):
        report = folder / f"counts-{name}.json"
        training.run([training.tool("mlp"), *MLP, *options, "--mesh=fsdp=2", f"--report={report}"])
        counts[name] = {}
        for entry in json.loads(report.read_text())["collectives"]:
            counts[name][entry["kind"]] = counts[name].get(entry["kind"], 0) + entry["count"]
    expected = dict(counts["whole"])
    last = {**expected, "all_gather": 4 * expected["all_gather"]}
    if counts["last"] != last or counts["each"] != {**last, "reduce_scatter": 4 * expected["reduce_scatter"]}:
        sys.exit(f"accumulate: got the collectives {counts}")


def check_constraints(folder):
    """Constraints that gather samples, or split them otherwise than they are loaded: microbatches split them all the same."""
    options = [option for option in MLP if not option.startswith(("--in", "--hidden", "--classes", "--batch"))]
    text = training.run([training.tool("mlp"), *MLP[:3], "--batch=8", "--emit=model"]).stdout
    spec = '<@mesh, [{"data"}, {"fsdp", ?}]>'
    for value, name in (("%fc1.relu_2", "%held"), ("%head.einsum", "%logits")):
        kind = re.search(rf"{re.escape(value)} = .*(tensor<8x\d+xf32>) loc", text).group(1)
        made = re.search(rf"\n *{re.escape(value)} = .*", text)
        rest = text[made.end():].replace(f"{value},", f"{name},")
        text = text[:made.end()] + f"\n{name} = fsdp.constraint {value} {spec} : {kind}" + rest
        spec = "<@mesh, [{}, {}]>"
    model = folder / "constraints.mlir"
    model.write_text(text.replace("module @mlp {", "module @mlp {\nfsdp.mesh @mesh <[\"data\"=2, \"fsdp\"=2]>", 1))
    data, init = training.GOLDEN / "mlp" / "data.safetensors", training.GOLDEN / "mlp" / "init.safetensors"
    logs = []
    for mesh, count in (("data=1,fsdp=1", 1), ("data=2,fsdp=2", 2)):
        program = folder / f"constraints-{count}"
        training.run([training.tool("fsdpc"), model, *options, f"--mesh={mesh}", f"--accumulate={count}", "-o", program])
        logs.append(training.train(program, f"{program.name}-run", STEPS, init, data))
    training.compare_log(logs[1][0], logs[0][0], "--loss=2e-6", "--grad_norm=2e-5", "--accuracy=0", f"--steps={STEPS}")
    training.compare_weights(logs[1][1], logs[0][1], "--absolute=1e-5")


def check_dropout(folder):
    """The masks of a microbatch are those of its samples in the whole batch."""
    data, weights = dataset(folder), initial(folder)
    options = [f"--width={WIDTH}", f"--hidden={HIDDEN}", f"--batch={BATCH}", "--lr=0.02", "--clip=1"]
    logs = []
    for mesh, count in training.chosen((("fsdp=1", 1), ("fsdp=1", 3), ("fsdp=3", 2)), 0, 2):
        program = folder / f"dropouts-{mesh}-{count}"
        training.run([training.tool("dropouts"), *options, f"--mesh={mesh}", f"--accumulate={count}", "-o", program])
        logs.append(training.train(program, f"{program.name}-run", STEPS, weights, data, "--seed=5")[0])
        training.compare_log(logs[-1], logs[0], "--loss=2e-5", "--grad_norm=2e-5", f"--steps={STEPS}")


def check_gpt2(folder):
    """With recomputation and bf16: K does not change what is recomputed, nor the bits that it leaves."""
    draw = random.Random(7)
    text = folder / "text.bin"
    text.write_bytes(bytes(draw.randrange(256) for _ in range(3000)))
    model = ["--layers=3", "--width=16", "--heads=2", "--context=8", "--vocab=256", "--batch=7", "--dropout=0.1"]
    for precision in training.chosen(("f32", "bf16"), 1):
        logs = []
        for options in ([], ["--accumulate=3"], ["--accumulate=3", "--remat=full"]):
            program = folder / f"gpt2-{precision}-{len(logs)}"
            training.run([training.tool("gpt2"), *model, *options, "--mesh=fsdp=2", f"--precision={precision}",
                          "-o", program])
            log = folder / f"{program.name}.jsonl"
            training.run([program, "--data", text, "--steps", STEPS, "--seed=3", "--log", log])
            logs.append(log)
        tolerance = "2e-6" if precision == "f32" else "5e-3"
        training.compare_log(logs[1], logs[0], f"--loss={tolerance}", "--grad_norm=2e-5" if precision == "f32"
                             else "--grad_norm=2e-2", f"--steps={STEPS}")
        if numbers(logs[1], "loss") != numbers(logs[2], "loss"):
            sys.exit("accumulate: got other losses with --remat=full, expected the same bits")


def main(scratch):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    check_counts(folder)
    check_mlp(folder)
    check_constraints(folder)
    check_dropout(folder)
    check_gpt2(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
