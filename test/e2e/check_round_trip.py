#!/usr/bin/env python3
"""check_round_trip.py SCRATCH: what --emit=model prints is the whole model.

For each model and each set of options: `MODEL --emit=model`, then `fsdpc` on that text with the options, gives the bytes of the
program that the model gives with them; and `fsdpc --emit=model` on the text prints the text.
"""

import pathlib
import re
import sys

import training

MODELS = {
    "linear": ["--in=5", "--out=3", "--batch=10", "--optimizer=sgd", "--lr=0.1"],
    "mlp": ["--batch=30", "--clip=1", "--warmup=3", "--schedule=cosine"],
    "gpt2": ["--layers=2", "--width=32", "--heads=2", "--context=16", "--vocab=61", "--batch=6", "--dropout=0.1"],
    "llama": ["--layers=2", "--width=32", "--heads=4", "--kv-heads=2", "--ffn=48", "--context=16", "--vocab=61", "--batch=6"],
    "branches": [],
}
OPTIONS = [
    [],
    ["--mesh=fsdp=2"],
    ["--mesh=data=2,fsdp=3", "--precision=bf16", "--prefetch=2"],
    ["--mesh=data=2", "--strategy=ddp", "--buckets=parameter"],
    ["--mesh=fsdp=4", "--shard=*e*:replicated", "--target=cuda"],
]


RECORD = re.compile(rb'/\*(options|compilation)=\*/".*",\n')


def files(folder):
    """Without what the program says of how it was compiled, which must differ: once each."""
    content = {}
    for path in folder.rglob("*"):
        if not path.is_file() or "runtime" in path.relative_to(folder).parts:
            continue
        content[path.relative_to(folder)] = path.read_bytes()
    name = pathlib.Path("train.cpp")
    content[name], count = RECORD.subn(b"", content[name])
    if count != 2:
        sys.exit(f"{folder / name}: got {count} records of the compilation, expected 2")
    return content


def main():
    folder = pathlib.Path(sys.argv[1])
    for model, own in MODELS.items():
        here = folder / model
        here.mkdir(parents=True)
        text, again = here / "called_otherwise.mlir", here / "again.mlir"
        training.run([training.tool(model), *own, "--emit=model", "-o", text])
        training.run([training.tool("fsdpc"), text, "--emit=model", "-o", again])
        training.same_bytes(text, again)
        if "fsdp.gradient" in text.read_text() or "placement" in text.read_text():
            sys.exit(f"{text} has been through a pass")
        for i, options in enumerate(OPTIONS):
            direct, through = here / f"direct-{i}", here / f"through-{i}"
            training.run([training.tool(model), *own, *options, "--emit=source", "-o", direct])
            training.run([training.tool("fsdpc"), text, *options, "--emit=source", "-o", through])
            ours, theirs = files(direct), files(through)
            different = sorted(str(name) for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
            if different or len(ours) < 4:
                sys.exit(f"{model} {' '.join(options)}: {different} of {sorted(map(str, ours))} differ")
    print(f"{len(MODELS)} models, {len(OPTIONS)} sets of options each")


if __name__ == "__main__":
    main()
