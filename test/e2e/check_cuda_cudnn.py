#!/usr/bin/env python3
"""check_cuda_cudnn.py SCRATCH: attention by the emulated cuDNN (test/emulator/cudnn), beside a program's own kernels.

Heads of 64 (gpt2, one rank; two that run different programs) and of 128 that share keys (llama, two ranks), lengths that no block divides. Both compute in bf16 and round at
other places: losses, norms and weights agree as those of the CUDA and the CPU program do. Within one choice no order of streams changes a bit.
"""

import json
import os
import pathlib
import subprocess
import sys

import emulated
import training
from check_cuda import TOLERANCES
from check_cuda_heads import BATCH, CONTEXT, VOCABULARY, tokens

STEPS = 4
FOLDER = pathlib.Path(training.tool("fsdpc")).parent.parent / "test" / "emulator" / "cudnn"
COMMON = ["--layers=1", "--heads=2", f"--context={CONTEXT}", f"--vocab={VOCABULARY}", f"--batch={BATCH}", "--clip=1", "--eps=1e-4"]
GPT2 = [*COMMON, "--width=128"]
LLAMA = [*COMMON, "--width=256", "--kv-heads=1", "--ffn=96"]


def expect(holds, got):
    if not holds:
        sys.exit(f"check_cuda_cudnn.py: {got}")


def environment(attention="cudnn", version=92800, mode="inline", library=FOLDER):
    return {**os.environ, "FSDP_EMULATOR": mode, "FSDP_ATTENTION": attention, "FSDP_CUDNN_DOUBLE": f"version={version}",
            "LD_LIBRARY_PATH": str(library)}


def run(program, *options, status=0, **choice):
    """What the program says."""
    ended = subprocess.run([str(word) for word in (program, *options)], env=environment(**choice), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
    expect(ended.returncode == status, f"{choice}: got status {ended.returncode}, expected {status}: {ended.stdout}")
    return ended.stdout


class Runs:
    """Runs of a program that was compiled for `ranks`."""

    def __init__(self, folder, model, options, ranks, mesh=None):
        self.folder = folder / (mesh or model)
        self.program = emulated.compile_model(model, self.folder, *options, "--precision=bf16", ranks=ranks, mesh=mesh)
        self.data = tokens(self.folder / "tokens.bin", STEPS * BATCH * CONTEXT)
        self.options = ["--communicator=loopback"] if ranks > 1 else []

    def train(self, name, *options, steps=STEPS, **choice):
        """Log, weights and what the program says."""
        log, weights = self.folder / f"{name}.jsonl", self.folder / f"{name}.safetensors"
        said = run(self.program, "--data", self.data, "--steps", steps, "--seed", 3, "--log", log, "--export", weights, *self.options,
                   *options, **choice)
        return log, weights, said


def results_are_those_of_the_own_kernels(runs):
    _, near, losses = TOLERANCES["bf16"]
    own, own_weights, said = runs.train("own", attention="own")
    expect("attention by" not in said, said)
    scratch = {}
    for version, shown in ((92800, "9.28.0"), (91900, "9.19.0")):
        log, weights, said = runs.train(f"cudnn-{version}", version=version)
        line = next((line for line in said.splitlines() if line.startswith("attention by ")), said)
        expect(line.startswith(f"attention by cuDNN {shown}, scratch memory ") and line.endswith(" bytes on stream 'compute'"), line)
        scratch[version] = int(line.split(" scratch memory ")[1].split()[0])
        workspaces = {json.loads(line)["workspace"] for line in log.read_text().splitlines()}
        expect(min(workspaces) >= scratch[version], f"got workspaces {workspaces} in the log, expected at least {scratch[version]}")
        training.compare_log(log, own, *losses)
        training.compare_weights(weights, own_weights, near)
        expect(weights.read_bytes() != own_weights.read_bytes(), "got the same weights by both, expected other roundings")
        late, late_weights, _ = runs.train(f"late-{version}", version=version, mode="deferred,shuffle,seed=2")
        training.compare_log(late, log, "--loss=0", "--grad_norm=0")
        training.same_bytes(late_weights, weights)
    expect(scratch[92800] != scratch[91900], f"got {scratch}, expected scratch memory of two forms")


def ranks_may_run_different_programs(runs):
    _, near, losses = TOLERANCES["bf16"]
    (own, own_weights, _), (log, weights, said) = (runs.train(attention, attention=attention) for attention in ("own", "cudnn"))
    expect("\nattention by cuDNN 9.28.0, " in said, said)
    training.compare_log(log, own, *losses)
    training.compare_weights(weights, own_weights, near)


def either_continues_what_the_other_wrote(runs):
    root = runs.folder / "saved"
    _, near, losses = TOLERANCES["bf16"]
    whole, whole_weights, _ = runs.train("whole", attention="own")
    own, cudnn = "the program's own kernels", "cuDNN 9.28.0"
    before = None
    for step, attention in ((1, "own"), (2, "cudnn"), (3, "own")):
        resume = ["--resume", root / f"step-{step - 1:08}"] if step > 1 else []
        log, _, said = runs.train(f"part-{step}", "--save", root, "--save-every", 1, *resume, steps=step, attention=attention)
        now = cudnn if attention == "cudnn" else own
        text = f"attention by {now}; the checkpoint was written with that of {before}\n"
        expect((text in said) == (before is not None), f"step {step}: {said}")
        runs_so_far = json.loads((root / f"step-{step:08}" / "manifest.json").read_text())["runs"]
        last = runs_so_far[-1] if isinstance(runs_so_far[-1], dict) else json.loads(runs_so_far[-1])
        expect(last.get("attention") == (cudnn if attention == "cudnn" else None), last)
        before = now
    log, weights, said = runs.train("part-4", "--resume", root / "step-00000003", attention="own")
    expect("the checkpoint was written with" not in said, said)
    training.compare_weights(weights, whole_weights, near)


def what_cannot_be_is_refused(runs, f32):
    steps = ["--data", runs.data, "--steps", 1, *runs.options]
    said = run(runs.program, *steps, attention="fast", status=2)
    expect("environment variable 'FSDP_ATTENTION' got 'fast', expected own or cudnn" in said, said)
    said = run(runs.program, *steps, version=91501, status=3)
    expect("FSDP_ATTENTION=cudnn got cuDNN 9.15.1, expected 9.19.0 or later: install cuDNN 9.25 or later for this CUDA" in said, said)
    broken = runs.folder / "broken"
    broken.mkdir()
    (broken / "libcudnn.so.9").write_text("not a library\n" * 99)
    said = run(runs.program, *steps, library=broken, status=3)
    expect("FSDP_ATTENTION=cudnn got no libcudnn.so.9 (" in said and "pip install nvidia-cudnn-cu13" in said, said)
    other = runs.folder / "other"
    other.mkdir()
    training.run(["g++", "-shared", "-o", other / "libcudnn.so.9", "-xc++", "/dev/null"])
    said = run(runs.program, *steps, library=other, status=3)
    expect("got a libcudnn.so.9 without the function 'cudnnGetVersion', expected cuDNN 9.19.0 or later" in said, said)
    said = run(runs.program, *steps, mode="compute=100", status=3)
    expect("FSDP_ATTENTION=cudnn got a GPU of compute capability 10.0, expected 9.0 (H100, H200)" in said, said)
    said = run(f32, *steps, status=1)
    expect("attention that is not passed to cuDNN: it is in f32, of documents or with a bias; unset it" in said
           and "h.0.attn" in said, said)
    said = run(runs.program, *steps, mode="memory=4550000", status=1)
    expect("cuDNN's attention needs " in said, said)


def main(scratch):
    folder = pathlib.Path(scratch)
    os.environ.update(training.unoptimized())
    gpt2, llama = Runs(folder, "gpt2", GPT2, 1), Runs(folder, "llama", LLAMA, 2)
    results_are_those_of_the_own_kernels(gpt2)
    results_are_those_of_the_own_kernels(llama)
    ranks_may_run_different_programs(Runs(folder, "gpt2", [*GPT2, "--layers=2", "--accumulate=2"], 2, "pipeline=2"))
    either_continues_what_the_other_wrote(gpt2)
    what_cannot_be_is_refused(gpt2, emulated.compile_model("gpt2", folder / "f32", *GPT2))


if __name__ == "__main__":
    main(*sys.argv[1:])
