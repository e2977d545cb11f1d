#!/usr/bin/env python3
"""check_cuda_roles.py SCRATCH IR: CUDA programs whose ranks run different programs, emulated.

IR is a local module of three roles (test/codegen/roles.mlir), with `fsdp=2` in each. Its program, and those of gpt2 on
`pipeline=2,fsdp=2` with four microbatches in two schedules, log the losses of the CPU's programs to 2e-6, evaluate and export
the same weights to 1e-5. Streams that run late, in a random order, change no bit. A run that is resumed from a checkpoint has the
bits of one in one piece, and each target resumes from the other's. A trace changes no bit and has the messages of each rank. Ranks
are threads on one device.
"""

import collections
import json

import os
import pathlib
import sys

import emulated
import training
from check_cuda import inputs
from check_roles import compile_roles, dataset, initial, scheduled_from, split_files

STEPS = 4
CLOSE = ("--loss=2e-6", "--grad_norm=2e-5")
SCHEDULES = {"1f1b": (), "interleaved": ("--pipeline-schedule=interleaved:2",), "gpipe": ("--pipeline-schedule=gpipe",),
             "zb": ("--pipeline-schedule=zb",), "one-microbatch": ("--accumulate=1",)}


def compare(cuda, cpu, run, folder, data, *options):
    """`run`: the name of the logs."""
    def train(program, name, mode=None):
        log, weights = folder / f"{name}.jsonl", folder / f"{name}.safetensors"
        if mode:
            os.environ["FSDP_EMULATOR"] = mode
            options_of_target = ("--communicator=loopback",)
        else:
            options_of_target = ()
        training.run([program, "--data", data, "--steps", STEPS, "--export", weights, "--log", log, *options_of_target, *options])
        os.environ.pop("FSDP_EMULATOR", None)
        return log, weights

    expected, expected_weights = train(cpu, f"{run}-cpu")
    log, weights = train(cuda, f"{run}-cuda", "inline")
    training.compare_log(log, expected, *CLOSE)
    training.compare_weights(weights, expected_weights, "--absolute=1e-5")
    for seed in range(1, 4 if training.WHOLE else 3):
        late, late_weights = train(cuda, f"{run}-late-{seed}", f"deferred,shuffle,seed={seed}")
        training.compare_log(late, log, "--loss=0", "--grad_norm=0")
        training.same_bytes(late_weights, weights)


def check_module(folder, ir):
    scheduled = scheduled_from(ir, folder)
    cpu = compile_roles(scheduled, folder / "cpu")
    sources = folder / "cuda"
    split_files(training.run([training.tool("fsdp-translate"), "--fsdp-to-cuda", scheduled]).stdout, sources)
    cuda = emulated.build(sources, folder / "train-cuda")
    data = dataset(folder / "data.safetensors")
    compare(cuda, cpu, "module", folder, data, "--init", initial(folder), "--val-data", data, "--eval-every", "2")


def check_pipeline(folder, name, schedule):
    options, _, data = inputs("gpt2")
    options = [option for option in options if not option.startswith(("--batch=", "--accumulate="))]
    options += ["--batch=8", "--accumulate=4", *schedule]
    mesh = "pipeline=2,fsdp=2"
    cpu = training.compile_model("gpt2", folder / name, *options, ranks=4, mesh=mesh)
    cuda = emulated.compile_model("gpt2", folder / name, *options, ranks=4, mesh=mesh)
    compare(cuda, cpu, name, folder, data)
    return cuda, cpu, data


def read_log(log):
    """{step: (loss, grad_norm)}"""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return {line["step"]: (line["loss"], line["grad_norm"]) for line in lines if "loss" in line}


def check_resumed(folder, cuda, cpu, data):
    def train(program, run, *options):
        log = folder / f"{run}.jsonl"
        training.run([program, "--data", data, "--steps", STEPS, "--log", log, *options])
        return read_log(log)

    os.environ["FSDP_EMULATOR"] = "inline"
    trace = folder / "trace.json"
    whole = train(cuda, "whole", "--communicator=loopback", "--save", folder / "of-cuda", "--save-every", "2")
    if train(cuda, "traced", "--communicator=loopback", "--trace", trace) != whole:
        sys.exit("a traced run has other numbers")
    if train(cuda, "resumed", "--communicator=loopback", "--resume", folder / "of-cuda/step-00000002") != \
            {step: numbers for step, numbers in whole.items() if step > 2}:
        sys.exit("a resumed run has other numbers")
    on_cpu = train(cpu, "whole-cpu", "--save", folder / "of-cpu", "--save-every", "2")
    for of, got in (("cuda", train(cpu, "cpu-of-cuda", "--resume", folder / "of-cuda/step-00000002")),
                    ("cpu", train(cuda, "cuda-of-cpu", "--communicator=loopback", "--resume", folder / "of-cpu/step-00000002"))):
        for step, (loss, norm) in got.items():
            for number, expected in ((loss, on_cpu[step][0]), (norm, on_cpu[step][1])):
                if abs(number - expected) > 2e-5 * abs(expected):
                    sys.exit(f"resumed from the checkpoint of {of}: step {step} has {number}, expected {expected}")
    kinds = collections.defaultdict(collections.Counter)
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("send", "receive"):
            kinds[event["pid"]][event["cat"]] += 1
    if len(kinds) != 4 or len({(count["send"], count["receive"]) for count in kinds.values()}) != 1:
        sys.exit(f"sends and receives by rank: {dict(kinds)}")


def main(scratch, ir):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    check_module(folder, ir)
    for name, schedule in training.chosen(SCHEDULES, "1f1b").items():
        programs = check_pipeline(folder, name, schedule)
        if name == "1f1b":
            check_resumed(folder, *programs)


if __name__ == "__main__":
    main(*sys.argv[1:])
