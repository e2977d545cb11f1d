#!/usr/bin/env python3
"""check_schedules.py SCRATCH: the learning rate of each step, compiled and given at run time.

The rates are those of transformers' and PyTorch's schedulers (test/golden/make_schedules.py), to 1e-6 of the base, whether the
options are the compiler's or the program's. A run that continues keeps the schedule of its checkpoint, whatever the program was
compiled with, until its command line has another one, which is printed and recorded. Programs are not optimized, and have one
rank: the rate depends on neither.
"""

import json
import os
import pathlib
import sys

import training
from checkpoints import Runs, expect, run_cases

GOLDEN = json.loads((training.GOLDEN / "schedules.json").read_text())
STEPS, LR = GOLDEN["steps"], GOLDEN["lr"]
DATA = training.GOLDEN / "linear" / "10-5-3.data.safetensors"
COSINE = ["--schedule=cosine", "--warmup=3", "--min-lr=0.01"]


def expected(options):
    return next(case["rates"] for case in GOLDEN["cases"] if case["options"] == options)


def compile_linear(folder, *options):
    return training.compile_model("linear", folder, "--in=5", "--out=3", "--batch=10", "--optimizer=sgd", f"--lr={LR}", *options)


def expect_rates(log, rates, what, first=1):
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [step for step in steps if "step" in step]
    expect([step["step"] for step in steps] == list(range(first, first + len(rates))), f"{what}: got the steps of {steps}")
    for step, rate in zip(steps, rates):
        expect(abs(step["lr"] - rate) <= 1e-6 * LR, f"{what}: step {step['step']}: got {step['lr']}, expected {rate}")


def compiled(runs, program):
    for number, case in enumerate(GOLDEN["cases"]):
        log = runs.at(f"given-{number}.jsonl")
        runs.run(program, *case["options"], "--log", log, steps=STEPS)
        expect_rates(log, case["rates"], f"given {case['options']}")
    wsd = GOLDEN["cases"][-1]
    other = compile_linear(runs.at("compiled"), *wsd["options"])
    log = runs.at("compiled.jsonl")
    runs.run(other, "--log", log, steps=STEPS)
    expect_rates(log, wsd["rates"], "compiled")
    # The command line overrides the compiler; other settings are as compiled.
    runs.run(other, "--log", log, "--schedule=cosine", "--warmup=3", steps=STEPS, says="  --schedule=cosine --warmup=3  ")
    expect_rates(log, expected(COSINE), "given over compiled")


def end(runs, program):
    """The schedule ends at --schedule-steps, and the last rate stays."""
    log = runs.at("end.jsonl")
    runs.run(program, *COSINE, f"--schedule-steps={STEPS}", "--log", log, steps=STEPS + 2)
    expect_rates(log, expected(COSINE) + [0.01] * 2, "--schedule-steps")


def resumed(runs, program):
    root, log = runs.at("saved"), runs.at("resumed.jsonl")
    rates = expected(COSINE)
    runs.run(program, *COSINE, "--schedule-steps=20", "--save", root, "--log", log, steps=8)
    manifest = json.loads((root / "step-00000008" / "manifest.json").read_text())
    expect(manifest["schedule"] == {"kind": "cosine", "warmup": 3, "min_lr": manifest["schedule"]["min_lr"],
                                    "decay_share": manifest["schedule"]["decay_share"], "steps": 20}
           and abs(manifest["schedule"]["min_lr"] - 0.01) < 1e-9, f"the manifest has {manifest['schedule']}")
    record = manifest["runs"][-1]
    expect(record["schedule"] == {"kind": "cosine", "warmup": 3, "min_lr": 0.01, "decay_share": 0.1, "steps": 20}
           and "changed" not in record, f"the record is {record}")
    # The checkpoint over the compiler.
    said = runs.run(program, "--resume", root, "--log", log, steps=12)
    expect("changed" not in said, said)
    expect_rates(log, rates[:12], "resumed")
    other = compile_linear(runs.at("other"), "--schedule=linear", "--warmup=7")
    runs.run(other, "--resume", root, "--log", log, steps=12)
    expect_rates(log, rates[:12], "resumed by a program with another schedule")
    # The command line overrides the checkpoint: differences are reported and recorded.
    again = runs.at("again.jsonl")
    said = runs.run(program, "--resume", root, "--log", again, "--log-header", "--save", runs.at("changed"), "--schedule=linear",
                    "--warmup=3", "--lr=0.02", "--schedule-steps=12", steps=12,
                    says="changed since the checkpoint: --lr 0.02 (was 0.05), --schedule linear (was cosine), --schedule-steps 12 (was 20)\n")
    expect_rates(again, [0.01 + 0.01 * (12 - t) / 9 for t in range(9, 13)], "changed", first=9)
    header = json.loads(again.read_text().splitlines()[0])["run"]
    changed = {"lr": {"from": 0.05, "to": 0.02}, "schedule": {"from": "cosine", "to": "linear"},
               "schedule_steps": {"from": 20, "to": 12}}
    expect(header["changed"] == changed, f"the log has {header}")
    records = json.loads((runs.at("changed") / "step-00000012" / "manifest.json").read_text())["runs"]
    expect([record.get("changed") for record in records] == [None, changed], f"the records are {records}")
    # Without --schedule-steps the schedule ends with the run, and another end is a change.
    runs.run(program, "--schedule=linear", "--save", runs.at("open"), steps=4)
    runs.run(program, "--resume", runs.at("open"), steps=6, says="changed since the checkpoint: --schedule-steps 6 (was 4)\n")


def refused(runs, program):
    for options, why in (
            (["--min-lr=0.1"], "got --min-lr with the schedule constant, which never falls: leave it out, or choose another with --schedule"),
            (["--schedule=linear", "--decay-share=0.5"], "got --decay-share with the schedule linear, which has no separate decay"),
            (["--schedule=inverse-sqrt", "--schedule-steps=5"], "got --schedule-steps with the schedule inverse-sqrt, which has no end"),
            (["--schedule=cosine", "--min-lr=0.1"], "got the minimum 0.1 of the learning rate above the rate itself, 0.05: give a lower"),
            (["--schedule=cos"], "--schedule: got 'cos', expected constant, linear, cosine, inverse-sqrt or wsd"),
            (["--decay-share=1"], "--decay-share: got '1'"),
            (["--warmup=-1"], "--warmup: got '-1'"),
            (["--schedule-steps=0"], "--schedule-steps: got '0'")):
        runs.run(program, *options, status=2, says=why)
    # The schedule of a checkpoint counts too. All ranks refuse, and one prints the error.
    runs.run(program, "--save", runs.at("constant"), steps=2)
    said = runs.run(program, "--resume", runs.at("constant"), "--min-lr=0.01", steps=4, status=2, says="got --min-lr with the schedule constant")
    expect(said.count("error:") == 1, said)


def main(scratch):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    runs = Runs(folder, DATA)
    program = compile_linear(folder / "plain")
    run_cases([compiled, end, resumed, refused], runs, program)


if __name__ == "__main__":
    main(*sys.argv[1:])
