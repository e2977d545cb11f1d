#!/usr/bin/env python3
"""check_precision.py SCRATCH MODEL: steps in bf16 on 1, 2 and 3 ranks; MODEL is a folder of test/golden.

Thirty steps with --precision=bf16 stay within the tolerances below of the golden in f32 and, for
language models, of PyTorch's own mixed precision; ranks agree with one another as closely; a second
run is bitwise the first. With --reduce-precision=bf16 the same, and however parameters are stored. In
the report gathers take half the bytes of f32, and reductions half where they are in bf16, as often
as in f32.
"""

import json
import os
import pathlib
import sys

import training

# Relative: against f32, of one number of ranks against another.
TOLERANCES = {
    "gpt2": ("--loss=2e-3", "--grad_norm=1e-2"),
    "llama": ("--loss=2e-3", "--grad_norm=1e-2"),
    "mlp": ("--loss=2e-2", "--grad_norm=5e-2"),
}

PLACEMENTS = {
    "gpt2": [("data=2,fsdp=2", "--strategy=hsdp", "--reduce-precision=bf16"),
             ("fsdp=3", "--shard=*wte*:0", "--shard=*c_attn.weight:1", "--shard=*ln*:replicated")],
    "llama": [("fsdp=4", "--min-shard-size=100", "--reduce-precision=bf16"),
              ("fsdp=2", "--shard=*:0", "--reshard-after-forward=never")],
    "mlp": [("fsdp=3", "--strategy=ddp", "--reduce-precision=bf16")],
}


def sizes(model, golden):
    named = golden["sizes"] if "sizes" in golden else {k: golden[k] for k in ("in", "hidden", "classes")}
    return [*(f"--{name}={size}" for name, size in named.items()), f"--batch={golden['batch']}"]


def collectives(model, folder, *options):
    """{kind: (count, bytes)} of tensors in a training step on 2 ranks, and what is whole at once."""
    path = folder / "report.json"
    training.run([training.tool(model), *options, "--mesh=fsdp=2", f"--report={path}"])
    report = json.loads(path.read_text())
    found = {"gathered": (1, report["gathered"])}
    for call in report["collectives"]:
        if call["kind"] != "all_reduce":  # of a double each
            count, total = found.get(call["kind"], (0, 0))
            found[call["kind"]] = count + call["count"], total + call["count"] * call["bytes"]
    return found


def check_report(model, folder, options):
    f32 = collectives(model, folder, *options)
    for reduced, divisor in (("f32", 1), ("bf16", 2)):
        got = collectives(model, folder, *options, "--precision=bf16", f"--reduce-precision={reduced}")
        divisors = {"gathered": 2, "all_gather": 2, "reduce_scatter": divisor}
        expected = {kind: (count, size // divisors[kind]) for kind, (count, size) in f32.items()}
        if got != expected:
            sys.exit(f"report: reduced in {reduced}: got {got}, expected {expected} as f32 has {f32}")
        print(f"report: reduced in {reduced}: {got}")


def main(scratch, model):
    folder, goldens = pathlib.Path(scratch), training.GOLDEN / model
    if model != "gpt2":
        os.environ.update(training.unoptimized_in_each_check())
    golden = json.loads((goldens / "adamw.json").read_text())
    options = [*sizes(model, golden), *golden["options"]]
    data = goldens / ("data.safetensors" if model == "mlp" else "tokens.bin")
    inputs = (golden["steps"], goldens / "init.safetensors", data)
    folder.mkdir(parents=True, exist_ok=True)
    check_report(model, folder, sizes(model, golden))

    first = None
    for ranks, *precision in ((1,), (2,), (3,), (3, "--reduce-precision=bf16")):
        name = f"{ranks}{'-narrow' if precision else ''}"
        program = training.compile_model(model, folder / name, *options, "--precision=bf16",
                                         *precision, ranks=ranks)
        os.environ.update(training.unoptimized_in_each_check())  # after the first program of gpt2
        log, weights = training.train(program, name, *inputs)
        training.compare_log(log, goldens / "adamw.json", *TOLERANCES[model])
        if "bf16" in golden:
            training.compare_log(log, goldens / "adamw.json", "--key=bf16", *TOLERANCES[model])
        first = first or log
        training.compare_log(log, first, *TOLERANCES[model])
        if ranks == 3:
            again, weights_again = training.train(program, "again", *inputs)
            training.compare_log(again, log, "--loss=0", "--grad_norm=0")
            training.same_bytes(weights_again, weights)
    for number, (mesh, *placement) in enumerate(PLACEMENTS[model]):
        program = training.compile_model(model, folder / f"placement-{number}", *options,
                                         "--precision=bf16", *placement, mesh=mesh)
        log, _ = training.train(program, "run", *inputs)
        training.compare_log(log, first, *TOLERANCES[model])


if __name__ == "__main__":
    main(*sys.argv[1:])
