#!/usr/bin/env python3
"""check_tensor_checkpoint.py SCRATCH: weights and checkpoints of split parameters are those of whole ones.

gpt2 and llama, with sizes that the axis divides and sizes that it does not. Checkpoints and exports of `fsdp=2,tensor=2` have the tensors, names and
shapes of one rank's: before the first update the same bytes, after it the same numbers to rounding. So have those of `context=2`. Each mesh continues from each other mesh's checkpoint, on its own bit for bit,
and from an exported file; a save while training continues has the same bytes.
"""

import os
import pathlib
import shutil
import sys

import training
import weights
from checkpoints import Runs, close, expect, folders, logged, run_cases, same, same_checkpoint

SIZES = {
    "gpt2": ["--layers=2", "--width=18", "--heads=3", "--context=8", "--vocab=61", "--batch=6"],
    "llama": ["--layers=2", "--width=32", "--heads=4", "--kv-heads=2", "--ffn=38", "--context=8", "--vocab=61", "--batch=6"],
}
# Copies on every rank, shards, shards along a dimension, and masters in f32 of copies in bf16.
MESHES = {
    "one": ("fsdp=1", []), "tensor-2": ("fsdp=2,tensor=2", []), "tensor-4": ("tensor=4", []), "context-2": ("context=2", []), "fsdp-3": ("fsdp=3", []),
    "data-2": ("data=2", ["--strategy=ddp"]), "zero2": ("fsdp=2,tensor=2", ["--strategy=zero2"]),
}
OF_GPT2 = {
    "dimension": ("fsdp=2,tensor=2", ["--shard=*.h.*.weight:0", "--buckets=parameter"]),
    "bf16": ("fsdp=2,tensor=2", ["--precision=bf16", "--strategy=zero1"]),
    "defer": ("tensor=2,fsdp=2", ["--defer-updates=on", "--accumulate=2"]),
}
STEPS, HALF = 6, 3
FILES = ("exp_avg.safetensors", "exp_avg_sq.safetensors", "model.safetensors")


def program(folder, model, mesh, options):
    return training.compile_model(model, folder, *SIZES[model], "--lr=0.01", "--eps=1e-4", "--clip=0.5", "--warmup=2",
                                  "--schedule=cosine", *options, mesh=mesh)


def one_layout(runs, programs):
    """Names, shapes and, of the first values, bytes do not depend on the mesh."""
    for name, path in programs.items():
        runs.run(path, "--lr=0", "--export", runs.at(f"{name}-first.safetensors"), steps=1)
        same(runs.at(f"{name}-first.safetensors"), runs.at("one-first.safetensors"), name)


def exports_and_checkpoints(runs, programs):
    for name, path in programs.items():
        runs.run(path, "--save", runs.at(name), "--save-every", HALF, "--log", runs.at(f"{name}.jsonl"), "--export",
                 runs.at(f"{name}.safetensors"), steps=STEPS)
        expect(folders(runs.at(name)) == ["step-00000003", "step-00000006"], f"{name}: {folders(runs.at(name))}")
        close(logged(runs.at("one.jsonl")), logged(runs.at(f"{name}.jsonl")), 0.05 if name == "bf16" else 2e-6, name)
        same_tensors = weights.read(runs.at(f"{name}.safetensors"))
        saved = {file: weights.read(runs.at(name) / "step-00000006" / file) for file in FILES}
        expect(saved["model.safetensors"] == same_tensors, f"{name}: the checkpoint has other weights than the export")
        for file, tensors in saved.items():
            expected = weights.read(runs.at("one") / "step-00000006" / file)
            expect([(key, value[:2]) for key, value in tensors.items()] == [(key, value[:2]) for key, value in expected.items()],
                   f"{name}: other tensors in {file}")
            allowed = 0.1 if name == "bf16" else 1e-5
            for key, (_, _, values) in tensors.items():
                largest = max(map(abs, expected[key][2]))
                worst = max(abs(a - b) for a, b in zip(values, expected[key][2]))
                expect(worst <= allowed * max(largest, 1e-2), f"{name}: {file}: '{key}' differs by {worst} of at most {largest}")


def runs_go_on_bit_for_bit(runs, programs):
    for name, path in programs.items():
        root, log, out = runs.at(f"{name}-parts"), runs.at(f"{name}-parts.jsonl"), runs.at(f"{name}-parts.safetensors")
        shutil.copytree(runs.at(name) / "step-00000003", root / "step-00000003")
        shutil.copy(runs.at(f"{name}.jsonl"), log)
        runs.run(path, "--resume", root, "--log", log, "--export", out, steps=STEPS)
        same(out, runs.at(f"{name}.safetensors"), name)
        expect(logged(log) == logged(runs.at(f"{name}.jsonl")), f"{name}: {logged(log)}")


def any_mesh_goes_on_from_any_other(runs, programs):
    for name in programs:
        for other, path in programs.items():
            if name == other or "bf16" in (name, other) or not ("tensor" in name + other or "context" in name + other):
                continue
            log, out = runs.at(f"{name}-to-{other}.jsonl"), runs.at(f"{name}-to-{other}.safetensors")
            runs.run(path, "--resume", runs.at(name) / "step-00000003", "--log", log, "--export", out, steps=STEPS)
            got = logged(log)
            expect([step["step"] for step in got] == [4, 5, 6], f"{name} to {other}: {got}")
            close(logged(runs.at("one.jsonl")), got, 2e-6, f"{name} to {other}")


def files_begin_new_runs(runs, programs):
    """An export of split parameters begins a run of one rank, and one rank's a run of split ones."""
    expected = None
    for path in (programs["one"], programs["tensor-2"], programs["tensor-4"]):
        for file in ("one.safetensors", "tensor-2.safetensors"):
            log = runs.at("init.jsonl")
            log.unlink(missing_ok=True)
            runs.run(path, "--init", runs.at(file), "--log", log, steps=2)
            expected = expected or logged(log)
            close(expected, logged(log), 1e-5, f"{path} from {file}")
    out = runs.at("again.safetensors")
    runs.run(programs["tensor-4"], "--init", runs.at("one.safetensors"), "--lr=0", "--export", out, steps=1)
    same(out, runs.at("one.safetensors"), "an export of what was read")


def a_save_behind_training_has_the_same_bytes(runs, programs):
    for name in ("tensor-2", "zero2"):
        root = runs.at(f"{name}-async")
        runs.run(programs[name], "--save", root, "--save-every", HALF, "--save-async", steps=STEPS)
        for step in folders(runs.at(name)):
            same_checkpoint(root / step, runs.at(name) / step, f"{name}, {step}")


def main():
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(sys.argv[1])
    for model, meshes in training.chosen((("gpt2", {**MESHES, **OF_GPT2}), ("llama", MESHES)), 0):
        programs = {name: program(folder / model / "programs" / name, model, *of) for name, of in training.chosen(meshes, "one", "tensor-2", "tensor-4", "context-2", "zero2", "bf16").items()}
        run_cases((one_layout, exports_and_checkpoints, runs_go_on_bit_for_bit, any_mesh_goes_on_from_any_other,
                   files_begin_new_runs, a_save_behind_training_has_the_same_bytes),
                  Runs(folder / model / "runs", training.GOLDEN / model / "tokens.bin", "--seed=5"), programs)


if __name__ == "__main__":
    main()
