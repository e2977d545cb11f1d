#!/usr/bin/env python3
"""check_prints.py SCRATCH: `print` and `check` of models.

What is logged is what Python computes of inputs, parameters and activations in double, on any mesh, with microbatches, checkpoints, both targets and
16 bits; and the numbers of training are the same bits as without. A check that fails ends the run with the name of the first, or does what --on-nan says.
"""

import json
import math
import os
import pathlib
import random
import struct
import sys

import check_phases
import emulated
import training
import weights as safetensors
from checkpoints import Runs, expect, logged, run_cases, same
from check_refusals import write

BATCH, POSITIONS, WIDTH, BLOCKS, CLASSES, SAMPLES, STEPS = 10, 3, 7, 4, 5, 40, 3
NUMBERS = ("min", "max", "mean", "nan")
PRINTED = ["x", "label", *(f"block{i}.{what}" for i in range(BLOCKS) for what in ("bounded", "hidden", "up", "product")), "logits", "hits", "loss"]


def dataset(path, huge=(), without=(), samples=SAMPLES):
    """Random samples; those of the steps `huge` overflow in the product that is checked, not in the loss; without those of the steps `without`."""
    draw = random.Random(3)
    x, label = [], []
    for sample in range(samples):
        row, kind = [draw.gauss(0, 1) for _ in range(POSITIONS * WIDTH)], draw.randrange(CLASSES)
        step = sample // BATCH + 1
        if step in huge and sample % BATCH == 6:
            row = [1000 * value for value in row]
        if step not in without:
            x += row
            label.append(kind)
    return write(path, {"x": ("F32", (len(label), POSITIONS, WIDTH), x), "label": ("I32", (len(label),), label)})


def initial(path):
    draw = random.Random(4)
    shapes = {f"block{i}.{name}": shape for i in range(BLOCKS) for name, shape in (("down", (WIDTH, 2 * WIDTH)), ("gate", (WIDTH, 2 * WIDTH)), ("up", (2 * WIDTH, WIDTH)))}
    shapes["head.weight"] = (WIDTH, CLASSES)
    return write(path, {name: ("F32", shape, [draw.gauss(0, 0.3) for _ in range(math.prod(shape))]) for name, shape in shapes.items()})


def rounded(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def product(rows, matrix, width):
    """Each row by a matrix of `width` columns."""
    return [[sum(a * matrix[k * width + j] for k, a in enumerate(row)) for j in range(width)] for row in rows]


def statistics(values):
    finite = [value for value in values if math.isfinite(value)]
    return {"min": min(finite), "max": max(finite), "mean": math.fsum(finite) / len(finite), "nan": len(values) - len(finite)}


def reference(data, weights):
    """name -> statistics of the first step, in double."""
    data, weights = safetensors.read(data), {name: values for name, (_, _, values) in safetensors.read(weights).items()}
    x, labels = data["x"][2][:BATCH * POSITIONS * WIDTH], data["label"][2][:BATCH]
    found = {"x": statistics(x), "label": statistics(labels)}
    rows = [list(x[i:i + WIDTH]) for i in range(0, len(x), WIDTH)]
    for i in range(BLOCKS):
        bounded = [[math.tanh(a) for a in row] for row in product(rows, weights[f"block{i}.down"], 2 * WIDTH)]
        gated = [[a * b for a, b in zip(*both)] for both in zip(bounded, product(rows, weights[f"block{i}.gate"], 2 * WIDTH))]
        hidden = [[0.5 * a * (1 + math.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))) for a in row] for row in gated]
        added = product(hidden, weights[f"block{i}.up"], WIDTH)
        for name, values in (("bounded", bounded), ("hidden", hidden), ("product", added)):
            found[f"block{i}.{name}"] = statistics([a for row in values for a in row])
        found[f"block{i}.up"] = statistics(weights[f"block{i}.up"])
        rows = [[a + b for a, b in zip(*both)] for both in zip(rows, added)]
    pooled = [[sum(rows[sample * POSITIONS + t][w] for t in range(POSITIONS)) / POSITIONS for w in range(WIDTH)] for sample in range(BATCH)]
    logits = product(pooled, weights["head.weight"], CLASSES)
    found["logits"] = statistics([a for row in logits for a in row])
    found["hits"] = statistics([float(row.index(max(row)) == label) for row, label in zip(logits, labels)])
    losses = [math.log(sum(math.exp(a) for a in row)) - row[label] for row, label in zip(logits, labels)]
    found["loss"] = statistics([math.fsum(losses)])
    return found


def flat(found):
    return {f"{name}.{number}": value for name, values in found.items() for number, value in values.items()}


def program(folder, *options, mesh="fsdp=1", build=training.compile_model):
    return build("prints", folder, f"--batch={BATCH}", "--lr=0.01", *options, mesh=mesh)


REPORTS = ("--prints=1", "--checks=1")


def trained(runs, folder, *options, mesh, build=training.compile_model, words=()):
    """Log and weights with prints and checks, and without; these are the same bits."""
    found = []
    for name, own in (("without", ()), ("with", REPORTS)):
        built = program(runs.at(f"{folder}-{name}"), *options, *own, mesh=mesh, build=build)
        log, out = runs.at(f"{folder}-{name}.jsonl"), runs.at(f"{folder}-{name}.safetensors")
        runs.run(built, "--init", runs.init, "--log", log, "--export", out, *words, steps=STEPS)
        found.append((logged(log), out))
    (bare, weights), (full, printed) = found
    same(weights, printed, folder)
    common = [{key: line[key] for key in ("step", "loss", "grad_norm", "lr")} for line in full]
    expect(common == [{key: line[key] for key in common[0]} for line in bare], f"{folder}: another log")
    expect(not any("." in key for key in bare[0]), f"{folder}: prints that were left out: {bare[0]}")
    return full


def agree(what, got, expected, allowed):
    for name in PRINTED:
        for number in NUMBERS:
            value, right = got[f"{name}.{number}"], expected[f"{name}.{number}"]
            expect(abs(value - right) <= allowed * max(1, abs(right)), f"{what}: {name}.{number}: got {value}, expected {right}")


def each_mesh_logs_what_python_computes(runs):
    numbers = flat(reference(runs.data, runs.init))
    plans = [("one", (), "fsdp=1"), ("three", (), "fsdp=3"), ("hsdp", ("--remat=full",), "data=2,fsdp=2"),
             ("microbatches", ("--accumulate=3", "--defer-updates=on"), "fsdp=2"), ("regions", ("--regions=1", "--accumulate=2"), "fsdp=1"),
             ("tensor", ("--shard=*.down:_,tensor", "--shard=*.gate:_,tensor", "--shard=*.up:tensor,_"), "fsdp=2,tensor=2"),
             ("every", ("--remat=every:2", "--strategy=ddp"), "data=4"), ("stages", ("--accumulate=3",), "pipeline=3,fsdp=2"),
             ("chunks", ("--pipeline-schedule=interleaved:2", "--accumulate=2"), "pipeline=2")]
    first = None
    for name, options, mesh in training.chosen(plans, 2, 7):
        log = trained(runs, name, *options, mesh=mesh)
        agree(name, log[0], numbers, 2e-6)
        for exact in ("x", "label", *(f"block{i}.up" for i in range(BLOCKS))):  # what no rounding of activations changes
            for number in ("min", "max", "nan"):
                key = f"{exact}.{number}"
                expect(rounded(log[0][key]) == rounded(numbers[key]), f"{name}: {key}: got {log[0][key]}, expected {numbers[key]}")
        first = first or log
        for line, right in zip(log, first):
            agree(name, line, right, 2e-5)
        expect(all(line[key] == 0 for line in log for key in line if key.endswith(".check")), f"{name}: a check fails")
    if training.WHOLE:
        trained(runs, "narrow", "--precision=bf16", "--reduce-precision=bf16", mesh="fsdp=2")
    log = trained(runs, "narrow-regions", "--precision=bf16", "--regions=1", "--accumulate=2", mesh="fsdp=3")
    agree("narrow", log[0], numbers, 0.02)


def phases_agree(runs):
    # The op itself, before it becomes reductions, has a separate implementation.
    text, out = runs.at("model.mlir"), runs.at("model.safetensors")
    training.run([training.tool("prints"), f"--batch={BATCH}", *REPORTS, "--regions=1", "--emit=model", "-o", text])
    training.run([training.tool("fsdp-run"), text, "--params", runs.init, "--inputs", runs.data, "--outputs", out])
    found = {name: values[0] for name, (_, shape, values) in safetensors.read(out).items() if not shape}
    agree("model", {name.removeprefix("output."): value for name, value in found.items()}, flat(reference(runs.data, runs.init)), 1e-7)
    expect(found["output.x.check"] == 0, f"{found}")
    cases = (("three", ["--mesh=fsdp=3"]), ("microbatches", ["--mesh=fsdp=2", "--accumulate=3", "--regions=1"]),
             ("stages", ["--mesh=pipeline=3", "--accumulate=2"]))
    for name, options in training.chosen(cases, 1, 2):
        check_phases.check(runs.at(name), "prints", runs.data, runs.init, [*REPORTS, f"--batch={BATCH}", "--lr=0.01", *options])


def fsdp_run_prints_values_of_each_phase(runs):
    """What ranks have of a batch of 10 over 3 of them: 4, 4 and 2 samples, and padding."""
    x = safetensors.read(runs.data)["x"][2]
    for phase, name in (("global", "x"), ("local", "x"), ("scheduled", "input.x")):
        text = runs.at(f"values-{phase}.mlir")
        training.run([training.tool("prints"), f"--batch={BATCH}", "--mesh=fsdp=3", f"--emit={phase}", "--emit-locations", "-o", text])
        said = training.run([training.tool("fsdp-run"), text, "--params", runs.init, "--inputs", runs.data, f"--print={name}", "--steps=2"]).stdout
        lines = [line.split() for line in said.splitlines() if f" {name} tensor<" in line]
        ranks = [()] if phase == "global" else [("rank", str(rank)) for rank in range(3)]
        found = {(line[1], *line[2:line.index(name)]): line[line.index(name) + 1:] for line in lines}
        expect(sorted(found) == sorted((step, *rank) for step in "12" for rank in ranks), f"{phase}: {said}")
        rows = BATCH if phase == "global" else 4
        for (step, *rank), line in found.items():
            first = ((int(step) - 1) * BATCH + (rows * int(rank[1]) if rank else 0)) * POSITIONS * WIDTH
            here = x[first:min(first + rows * POSITIONS * WIDTH, int(step) * BATCH * POSITIONS * WIDTH)]
            expect(line[0] == f"tensor<{rows}x{POSITIONS}x{WIDTH}xf32>:" and line[-1] == "...", f"{phase}: {line}")
            expect([float(value) for value in line[-7:-1]] == [float(f"{value:.6g}") for value in here[:6]], f"{phase}: {line}")
            if len(here) == rows * POSITIONS * WIDTH:  # the machine fills the padding
                right = statistics(here)
                expect([float(line[line.index(number) + 1].rstrip(":")) for number in NUMBERS] ==
                       [float(f"{right[number]:.6g}") for number in NUMBERS], f"{phase}: {line}, expected {right}")


def emulated_cuda_logs_the_same(runs):
    cpu = trained(runs, "cpu", "--accumulate=2", mesh="fsdp=2")
    os.environ["FSDP_EMULATOR"] = "inline"
    try:
        cuda = trained(runs, "cuda", "--accumulate=2", mesh="fsdp=2", build=emulated.compile_model, words=("--communicator=loopback",))
    finally:
        del os.environ["FSDP_EMULATOR"]
    for line, right in zip(cuda, cpu):
        agree("cuda", line, right, 2e-5)


def people_see_them(runs):
    built = program(runs.at("seen"), *REPORTS, mesh="fsdp=2")
    said = runs.run(built, "--init", runs.init, "--log", runs.at("seen.jsonl"), "--val-data", runs.data, steps=2)
    line = logged(runs.at("seen.jsonl"))[1]
    shown = "  logits: min {:.6g}  max {:.6g}  mean {:.6g}  nan 0\n".format(*(line[f"logits.{number}"] for number in NUMBERS[:3]))
    expect(shown in said and said.count("  block3.up: min ") == 2, f"lacking {shown!r}: {said}")
    done = next(text for text in said.splitlines() if text.startswith("done:"))
    expect("logits" not in done and "loss" in done, done)
    expect("full batches" not in said and "val_loss" in line and not any(key.startswith("val_") and "." in key for key in line), f"{line}")
    table = training.run([training.tool("fsdpc-log"), runs.at("seen.jsonl"), "--fields", "step,logits.max"]).stdout
    expect("logits.max" in table and f"{line['logits.max']:.4g}"[:4] in table, table)


def a_run_goes_on_with_prints(runs):
    """They are no part of what weights are compared with."""
    bare, full = (program(runs.at(f"goes-on-{len(own)}"), *own, mesh="fsdp=2") for own in ((), REPORTS))
    whole, out, root = runs.at("goes-on.safetensors"), runs.at("went-on.safetensors"), runs.at("goes-on")
    runs.run(bare, "--init", runs.init, "--export", whole, steps=4)
    runs.run(bare, "--init", runs.init, "--save", root, steps=2)
    said = runs.run(full, "--save", root, "--resume=latest", "--export", out, steps=4)
    same(whole, out, "continued with prints")
    expect("warning" not in said, said)


def checks_end_the_run(runs):
    bad = Runs(runs.folder, dataset(runs.at("huge.safetensors"), huge=(2, 3)))
    built = program(runs.at("checked"), *REPORTS, "--accumulate=2", mesh="fsdp=1|fsdp=3|pipeline=3")
    for plan in ("fsdp=1", "fsdp=3", "pipeline=3"):
        log, root = runs.at(f"{plan}.jsonl"), runs.at(plan)
        words = (f"--plan={plan}", "--init", runs.init, "--log", log)
        said = bad.run(built, *words, "--save", root, "--max-restarts", 2, status=1, steps=STEPS)
        expect("values that are not finite in 'block0.large', with loss " in said and "in step 2, whose update was skipped" in said, said)
        expect("restart" not in said.split("error:")[1], f"it was restarted: {said}")
        said = bad.run(built, *words, "--on-nan=stop", status=1, steps=STEPS)
        expect("values that are not finite in 'block0.large', with loss " in said and "(--on-nan=stop)" in said, said)
        note = json.loads(pathlib.Path(f"{log}.flight-record.txt.bad-step.json").read_text())
        expect(note["check"] == "block0.large" and note["values"] > 0 and math.isfinite(float(note["loss"])), f"{note}")
        expect(note["samples"] == list(range(BATCH, 2 * BATCH)) and note["parameter"] is None, f"{note}")
        # Skipped: as on data without these samples, in a run that is as many steps shorter.
        out, right = runs.at("skipped.safetensors"), runs.at("right.safetensors")
        bad.run(built, *words, "--on-nan=skip", "--export", out, steps=4)
        lines = logged(log)
        expect([line["block0.large.check"] > 0 for line in lines] == [False, True, True, False], f"{lines}")
        expect(all(line["block0.hidden.check"] == line["x.check"] == 0 and line["loss"] is not None for line in lines), f"{lines}")
        Runs(runs.folder, dataset(runs.at("good.safetensors"), huge=(2, 3), without=(2, 3))).run(
            built, f"--plan={plan}", "--init", runs.init, "--export", right, steps=2)
        same(out, right, "skipped")
        said = bad.run(built, *words, "--on-nan=rollback", "--save", runs.at(f"{plan}-back"), "--save-every", 1, "--export", out, steps=2,
                       says=("values that are not finite in 'block0.large'", "rollback 2 to step 1, past 10 samples"))
        same(out, right, "rolled back")
    said = bad.run(built, "--init", runs.init, "--on-nan=skip", steps=3, says="values that are not finite in 'block0.large'")
    expect("in the last step, a step that is not finite: its update was skipped" in said, said)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    os.environ.update(training.unoptimized())
    runs = Runs(folder / "runs", dataset(folder / "data.safetensors"))
    runs.init = initial(folder / "init.safetensors")
    run_cases([each_mesh_logs_what_python_computes, phases_agree, fsdp_run_prints_values_of_each_phase, emulated_cuda_logs_the_same,
               people_see_them, a_run_goes_on_with_prints, checks_end_the_run], runs)


main()
