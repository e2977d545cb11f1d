#!/usr/bin/env python3
"""check_biases.py SCRATCH: attention with biases trains as PyTorch trains it, on any mesh and both targets.

Ten steps of AdamW, four of emulated programs, of the models of models/biases.cpp: losses and gradient norms are those of
test/golden/make_biases.py, after ten steps weights too. ALiBi has no parameter, T5's table and a bias for all heads are learned, a mask hides
keys by -infinity, and all keys of the first query, another by -1e9, among them all that the first two queries see. Where heads are split, a
bias for each head is split with them, and the gradient of one for all is summed over `tensor`. A bias that needs no gradient has no kernel for
it. In bf16 the losses are those of f32 to 3 %.
"""

import json
import os
import pathlib
import sys

import check_phases
import emulated
import training

STEPS, EMULATED_STEPS = 10, 4
GOLDEN = training.GOLDEN / "biases"
OPTIONS = ["--lr=0.01", "--eps=1e-3", "--weight-decay=0.01"]
TIGHT = ("--loss=2e-5", "--grad_norm=1e-4")
MESHES = {
    "alone": ("fsdp=1", []),
    "fsdp": ("fsdp=4", []),
    "data": ("data=2,fsdp=2", ["--strategy=hsdp"]),
    "tensor": ("tensor=3", ["--shard=layer0.in:_,_,tensor,_", "--shard=*.q:_,tensor,_"]),
    "heads": ("fsdp=2,tensor=2", ["--shard=layer0.in:_,_,tensor,_", "--accumulate=3", "--remat=full"]),
    "groups": ("tensor=6", ["--shard=*.q:_,tensor,_"]),
}
CASES = {
    "alibi-fsdp": ("alibi", "fsdp"), "alibi-tensor": ("alibi", "tensor"), "relative-alone": ("relative", "alone"),
    "relative-data": ("relative", "data"), "relative-tensor": ("relative", "tensor"), "relative-heads": ("relative", "heads"),
    "relative-groups": ("relative", "groups"), "mask-fsdp": ("mask", "fsdp"), "mask-heads": ("mask", "heads"),
}


def expected_log(folder, kind):
    path = folder / f"{kind}.jsonl"
    steps = json.loads((GOLDEN / "steps.json").read_text())[kind]
    path.write_text("".join(json.dumps(step) + "\n" for step in steps))
    return path


def main(scratch):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    data = GOLDEN / "data.safetensors"
    logs = {}

    def init(kind):
        return GOLDEN / f"{kind}.init.safetensors"

    def compare(kind, log, weights):
        training.compare_log(log, expected_log(folder, kind), *TIGHT, f"--steps={STEPS}")
        training.compare_weights(weights, GOLDEN / f"{kind}.expected.safetensors", "--absolute=2e-4")

    for name, (kind, mesh) in training.chosen(CASES, "alibi-tensor", "relative-data", "relative-heads", "mask-fsdp").items():
        axes, options = MESHES[mesh]
        program = training.compile_model("biases", folder / name, f"--bias={kind}", *OPTIONS, *options, mesh=axes)
        logs[kind], weights = training.train(program, "log", STEPS, init(kind), data)
        compare(kind, logs[kind], weights)
    check_phases.check(folder / "phases", "biases", data, init("relative"),
                       ["--bias=relative", *OPTIONS, "--mesh=fsdp=2,tensor=3", *MESHES["tensor"][1]])
    for kind in training.chosen(("relative", "alibi", "mask"), 0):
        place = folder / f"cuda-{kind}"
        program = emulated.compile_model("biases", place, f"--bias={kind}", *OPTIONS, "--shard=layer0.in:_,_,tensor,_", ranks=4,
                                         mesh="fsdp=2,tensor=2")
        log, _ = emulated.train(program, "log", EMULATED_STEPS, init(kind), data, ranks=4, mode="deferred,shuffle,seed=4")
        training.compare_log(log, expected_log(folder, kind), *TIGHT, f"--steps={EMULATED_STEPS}")
    narrow = training.compile_model("biases", folder / "bf16", "--bias=relative", *OPTIONS, "--precision=bf16", ranks=2)
    log, _ = training.train(narrow, "log", STEPS, init("relative"), data)
    training.compare_log(log, expected_log(folder, "relative"), "--loss=0.03", "--grad_norm=0.1", f"--steps={STEPS}")
    for kind, gradients in (("alibi", 0), ("relative", 3)):
        text = training.run([training.tool("biases"), f"--bias={kind}", "--mesh=fsdp=1", "--emit=global"]).stdout
        if (got := text.count("nn.attention_bias_grad")) != gradients:
            sys.exit(f"biases: {kind}: got {got} gradients of biases, expected {gradients}")


if __name__ == "__main__":
    main(*sys.argv[1:])
