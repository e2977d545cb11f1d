#!/usr/bin/env python3
"""check_parameter_groups.py SCRATCH: rates and weight decay by patterns of names (--lr-scale, --no-decay).

A program of two plans, with parameters that are stored in every way, agrees with PyTorch's Adam whose param_groups have these rates and decays
(test/golden/make_mlp.py) to 1e-4 in loss, gradient norm and weights, compiled with them or given them; check_hyperparameters.py has the other rules and the emulated
CUDA program. A parameter whose factor is 0 keeps its bits. A run that continues keeps the patterns of its checkpoint, on another mesh too, until its command line has
others. A language model with a tied weight, microbatches and deferred updates trains the same on several ranks as on one.
"""

import json
import os
import pathlib
import sys

import training
import weights as safetensors
from checkpoints import Runs, expect, run_cases

GOLDENS = training.GOLDEN / "mlp"
INIT, DATA = GOLDENS / "init.safetensors", GOLDENS / "data.safetensors"
GOLDEN = json.loads((GOLDENS / "groups-adam.json").read_text())
GROUPED = [word for word in GOLDEN["options"] if word.startswith(("--lr-scale", "--no-decay"))]
SCALES = [word.removeprefix("--lr-scale=") for word in GROUPED[:-1]]
# Another plan for the same program.
FOUR, THREE = ["--plan=data=2,fsdp=2"], ["--plan=data=1,fsdp=3"]


def compile_mlp(runs, name, *options):
    sizes = [f"--in={GOLDEN['in']}", f"--hidden={GOLDEN['hidden']}", f"--classes={GOLDEN['classes']}", f"--batch={GOLDEN['batch']}"]
    rule = [word for word in GOLDEN["options"] if word not in GROUPED]
    return training.compile_model("mlp", runs.at(name), *sizes, *rule, "--strategy=hsdp", "--shard=fc1.weight:0", "--shard=head.bias:replicated", *options,
                                  mesh="data=2,fsdp=2|data=1,fsdp=3")


def agree(program, *options):
    log, weights = training.train(program, "run", GOLDEN["steps"], INIT, DATA, *options)
    training.compare_log(log, GOLDENS / "groups-adam.json", f"--steps={GOLDEN['steps']}", "--loss=1e-4", "--grad_norm=1e-4", "--accuracy=1e-6")
    training.compare_weights(weights, GOLDENS / "groups-adam.expected.safetensors", "--absolute=1e-4")
    expect(safetensors.read(weights)["head.bias"] == safetensors.read(INIT)["head.bias"], f"{weights}: head.bias, whose rate is multiplied by 0, has changed")


def classifier(runs):
    plain, compiled = compile_mlp(runs, "plain"), compile_mlp(runs, "compiled", *GROUPED)
    agree(plain, *FOUR, *GROUPED)
    agree(compiled, *THREE)
    # Settings without effect do not change a bit.
    runs.run(plain, *FOUR, "--export", runs.at("without"), steps=3)
    for program, options in (plain, ["--lr-scale=*=1", "--no-decay=*.bias"]), (compiled, ["--lr-scale=none", "--no-decay=none"]):
        runs.run(program, *FOUR, *options, "--export", runs.at("same"), steps=3, says="  " + " ".join(options) + "  ")
        training.same_bytes(runs.at("same"), runs.at("without"))
    continued(runs, plain, compiled)
    for option, why in (("--lr-scale=fc3.*=2", "--lr-scale: no parameter matches 'fc3.*', expected the name of one, or names with '*' for any part of them; this model has 'fc1."),
                        ("--no-decay=bias", "--no-decay: no parameter matches 'bias', expected the name of one"),
                        ("--lr-scale=fc1.*", "--lr-scale: got 'fc1.*', expected PATTERN=X, X a finite f32 number >= 0"),
                        ("--lr-scale=fc1.*=nan", "--lr-scale: the factor of 'fc1.*': got 'nan', expected a finite f32 number >= 0")):
        runs.run(plain, *FOUR, option, status=2, says=why)


def continued(runs, plain, compiled):
    root, log = runs.at("saved"), runs.at("log.jsonl")
    runs.run(plain, *FOUR, *GROUPED, "--export", runs.at("whole"), steps=6, says=f"  --lr-scale={','.join(SCALES)} --no-decay=fc2.*  ")
    runs.run(plain, *FOUR, *GROUPED, "--save", root, steps=3)
    manifest = json.loads((root / "step-00000003" / "manifest.json").read_text())
    expect((manifest["lr_scale"], manifest["no_decay"]) == (SCALES, ["fc2.*"]), f"the manifest has {manifest}")
    record = manifest["runs"][-1]["optimizer"]
    expect((record["lr_scale"], record["no_decay"]) == (SCALES, ["fc2.*"]), f"the record has {record}")
    said = runs.run(plain, *FOUR, "--resume", root, "--export", runs.at("rest"), steps=6)
    expect("changed" not in said, said)
    training.same_bytes(runs.at("rest"), runs.at("whole"))
    runs.run(plain, *THREE, "--resume", root, "--export", runs.at("elastic"), steps=6)
    training.compare_weights(runs.at("elastic"), runs.at("whole"), "--absolute=1e-6")
    # The command line over the checkpoint.
    runs.run(plain, *FOUR, "--resume", root, "--lr-scale=none", "--no-decay=*.bias", "--log", log, "--log-header", steps=6,
             says=f"changed since the checkpoint: --lr-scale none (was {','.join(SCALES)}), --no-decay *.bias (was fc2.*)\n")
    header = json.loads(log.read_text().splitlines()[0])["run"]
    expect(header["changed"]["no_decay"] == {"from": "fc2.*", "to": "*.bias"} and "lr_scale" not in header["optimizer"], f"the log has {header}")
    # The checkpoint over the compiler.
    runs.run(plain, *FOUR, "--save", runs.at("bare"), steps=3)
    runs.run(compiled, *FOUR, "--resume", runs.at("bare"), "--export", runs.at("bare-rest"), steps=6, says="  --lr-scale=none --no-decay=none  ")
    runs.run(plain, *FOUR, "--export", runs.at("bare-whole"), steps=6)
    training.same_bytes(runs.at("bare-rest"), runs.at("bare-whole"))


def language(runs):
    sizes = ["--layers=1", "--width=16", "--heads=2", "--context=8", "--vocab=61", "--batch=8", "--optimizer=adamw", "--lr=1e-2", "--weight-decay=0.3", "--clip=0.5"]
    grouped = ["--lr-scale=*.h.*=0.25", "--lr-scale=*.bias=4", "--lr-scale=*wte*=0.5", "--lr-scale=*ln*=0", "--no-decay=*.wte.*"]
    program = training.compile_model("gpt2", runs.at("gpt2"), *sizes, *grouped, "--accumulate=2", "--defer-updates=on", mesh="fsdp=1|fsdp=3")
    text = training.GOLDEN / "gpt2" / "tokens.bin"
    for mesh in "fsdp=1", "fsdp=3":
        log, expected = (runs.at(f"{name}.jsonl") for name in (mesh, "fsdp=1"))
        training.run([program, f"--plan={mesh}", "--data", text, "--steps=6", "--seed=3", "--log", log])
        training.compare_log(log, expected, "--loss=2e-6", "--grad_norm=2e-5", "--steps=6")
    done = Runs(runs.folder, text).run(program, "--lr-scale=lm_head.weight=2", status=2)  # its tied weight is transformer.wte.weight
    expect("--lr-scale: no parameter matches 'lm_head.weight'" in done, done)
    # LoRA+: the second matrices of adapters have a separate rate, and frozen parameters have none.
    lora = training.run([training.tool("gpt2"), *sizes, "--lora=2", "--lr-scale=*.lora_B.*=16", "--emit=global"]).stdout
    expect('lr_scale = ["*.lora_B.*=16"]' in lora, "the step of the adapters lacks the pattern")


def main(scratch):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    run_cases([classifier, language], Runs(folder, DATA))


if __name__ == "__main__":
    main(*sys.argv[1:])
