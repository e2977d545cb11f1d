#!/usr/bin/env python3
"""check_hyperparameters.py SCRATCH: clipping, weight decay, the constants of every rule, and rates and decay of some parameters as options of the program.

A program that was compiled with other values agrees with PyTorch (test/golden/make_mlp.py) to 1e-4 in loss and gradient norm, and has the bits of the program
that was compiled with these values, on the CPU and, in the emulator, as a CUDA program. A run that continues keeps the values of its
checkpoint, whatever its program was compiled with, until its command line has others, which are printed and recorded.
"""

import json
import os
import pathlib
import sys

import emulated
import training
import weights as safetensors
from checkpoints import Runs, expect, run_cases

GOLDENS = training.GOLDEN / "mlp"
# The compiled settings besides the rule.
OTHERS = ["--lr=1", "--clip=5", "--weight-decay=0.25"]


def golden(name):
    path = GOLDENS / f"{name}.json"
    if not path.exists():
        sys.exit(f"{path} is missing: add '{name}' to test/golden/make_mlp.py, and run it (docs/add-an-optimizer.md)")
    return json.loads(path.read_text())


def with_states(options):
    """Momentum other than 0 has a state, which only the compiler can give a program."""
    return ["--momentum=0.1"] * any(option.startswith("--momentum=") for option in options)


def sizes(of):
    return [f"--in={of['in']}", f"--hidden={of['hidden']}", f"--classes={of['classes']}", f"--batch={of['batch']}"]


def agree(runs):
    for rule in training.update_rules():
        golden(rule)  # check_mlp.py trains it
        name = f"settings-{rule}"
        of, folder = golden(name), runs.at(name)
        optimizer, *given = of["options"]
        compiled = training.compile_model("mlp", folder / "compiled", *sizes(of), optimizer, *given, ranks=2)
        other = training.compile_model("mlp", folder / "other", *sizes(of), optimizer, *OTHERS, *with_states(given), ranks=2)
        inputs = (GOLDENS / "init.safetensors", GOLDENS / "data.safetensors")
        log, weights = training.train(other, "given", of["steps"], *inputs, *given)
        training.compare_log(log, GOLDENS / f"{name}.json", f"--steps={of['steps']}", "--loss=1e-4", "--grad_norm=1e-4", "--accuracy=1e-6")
        training.compare_weights(weights, GOLDENS / f"{name}.expected.safetensors", "--absolute=1e-4")
        _, same = training.train(compiled, "compiled", of["steps"], *inputs)
        training.same_bytes(weights, same)
        in_groups(name.replace("settings", "groups"), other, training.train)


def in_groups(name, program, train, **how):
    """Rates and decay of their own for some parameters; of head.bias the rate is multiplied by 0."""
    of = golden(name)
    init = GOLDENS / "init.safetensors"
    log, weights = train(program, "groups", of["steps"], init, GOLDENS / "data.safetensors", "--clip=0", *of["options"][1:], **how)
    training.compare_log(log, GOLDENS / f"{name}.json", f"--steps={of['steps']}", "--loss=1e-4", "--grad_norm=1e-4", "--accuracy=1e-6")
    training.compare_weights(weights, GOLDENS / f"{name}.expected.safetensors", "--absolute=1e-4")
    before, after = (safetensors.read(path)["head.bias"] for path in (init, weights))
    expect(before == after, f"{name}: head.bias has changed")


def on_devices(runs):
    of = golden("settings-adamw")
    rule, *given = of["options"]
    program = emulated.compile_model("mlp", runs.at("cuda"), *sizes(of), rule, *OTHERS, ranks=2)
    log, _ = emulated.train(program, "given", of["steps"], GOLDENS / "init.safetensors", GOLDENS / "data.safetensors", *given, ranks=2)
    training.compare_log(log, GOLDENS / "settings-adamw.json", f"--steps={of['steps']}", "--loss=1e-4", "--grad_norm=1e-4")
    in_groups("groups-adamw", program, emulated.train, ranks=2)


def compile_adamw(runs, name, *options):
    return training.compile_model("mlp", runs.at(name), *sizes(golden("settings-adamw")), "--optimizer=adamw", "--lr=0.01", *options)


def without_clip(runs):
    """No clipping at run time is no clipping at all."""
    clips, never = compile_adamw(runs, "clips", "--clip=0.01"), compile_adamw(runs, "never")
    runs.run(clips, "--clip=0", "--export", runs.at("zero"), steps=3, says="  --clip=0  ")
    runs.run(never, "--export", runs.at("never-clipped"), steps=3)
    training.same_bytes(runs.at("zero"), runs.at("never-clipped"))
    runs.run(clips, "--export", runs.at("clipped"), steps=3)
    expect(runs.at("clipped").read_bytes() != runs.at("zero").read_bytes(), "clipping to 0.01 changes nothing")


def resumed(runs):
    program = compile_adamw(runs, "plain", "--clip=1", "--beta2=0.99")
    root, log = runs.at("saved"), runs.at("changed.jsonl")
    runs.run(program, "--clip=0.5", "--beta1=0.8", "--export", runs.at("whole"), steps=6)
    runs.run(program, "--clip=0.5", "--beta1=0.8", "--save", root, steps=3, says="  --clip=0.5 --beta1=0.8  ")
    expected = {"rule": "adamw", "constants": {"beta1": 0.8, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.01, "clip": 0.5}}
    manifest = json.loads((root / "step-00000003" / "manifest.json").read_text())
    got = manifest["optimizer"]
    expect(got["rule"] == "adamw" and got["constants"].keys() == expected["constants"].keys()
           and all(abs(got["constants"][name] - value) <= 1e-7 * value for name, value in expected["constants"].items()),
           f"the manifest has {got}")
    record = manifest["runs"][-1]["optimizer"]
    expect(record == {"rule": "adamw", **expected["constants"]}, f"the record has {record}")
    # The checkpoint over the compiler.
    other = compile_adamw(runs, "other", "--clip=7", "--eps=0.5")
    for name, each in ("same", program), ("recompiled", other):
        said = runs.run(each, "--resume", root, "--export", runs.at(name), steps=6)
        expect("changed" not in said, said)
        training.same_bytes(runs.at(name), runs.at("whole"))
    # The command line over the checkpoint.
    runs.run(program, "--resume", root, "--weight-decay=0.3", "--clip=0.5", "--beta1=0.7", "--log", log, "--log-header", steps=6,
             says="changed since the checkpoint: --beta1 0.7 (was 0.8), --weight-decay 0.3 (was 0.01)\n")
    header = json.loads(log.read_text().splitlines()[0])["run"]
    expect(header["changed"] == {"beta1": {"from": 0.8, "to": 0.7}, "weight_decay": {"from": 0.01, "to": 0.3}}, f"the log has {header}")
    # A program reports unsupported settings too.
    never = compile_adamw(runs, "unclipped")
    runs.run(never, "--resume", root, steps=6, says="changed since the checkpoint: --clip 0 (was 0.5)\n")


def refused(runs):
    adamw = compile_adamw(runs, "refuses")
    sgd = training.compile_model("mlp", runs.at("sgd"), *sizes(golden("settings-sgd")), "--optimizer=sgd", "--lr=0.1", "--clip=1")
    for program, option, why in (
            (adamw, "--clip=1", "got --clip, but this program was compiled without clipping: compile it with --clip"),
            (adamw, "--momentum=0.5", "got --momentum, but the update rule of this program, 'adamw', has no momentum: leave it out, or compile with another --optimizer"),
            (sgd, "--momentum=0.5", "got --momentum, but this program was compiled with momentum 0, without the state that another value needs: compile it with --momentum"),
            (sgd, "--eps=1", "got --eps, but the update rule of this program, 'sgd', has no eps"),
            (adamw, "--beta1=1", "--beta1: got '1', expected an f32 number >= 0 and < 1"),
            (adamw, "--eps=-1", "--eps: got '-1', expected a finite f32 number >= 0"),
            (sgd, "--clip=nan", "--clip: got 'nan', expected a finite f32 number >= 0"),
            (sgd, "--weight-decay=1e-50", "--weight-decay: got '1e-50'")):
        runs.run(program, option, status=2, says=why)
    for program, there, missing in (adamw, "--beta2 X=0.999", "--momentum"), (sgd, "--clip X=1", "--eps"):
        shown = runs.run(program, "--help")
        expect(there in shown and missing not in shown, shown)


def main(scratch):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    runs = Runs(folder, GOLDENS / "data.safetensors")
    run_cases([agree, on_devices, without_clip, resumed, refused], runs)


if __name__ == "__main__":
    main(*sys.argv[1:])
