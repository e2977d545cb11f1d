#!/usr/bin/env python3
"""check_round_trip.py SCRATCH: what --emit=model prints is the whole model.

For each model and each set of options: `MODEL --emit=model`, then `fsdpc` on that text with the options, gives the bytes of the
program that the model gives with them; and `fsdpc --emit=model` on the text prints the text. The IR of every other phase is
read back and printed as it was, with and without locations (`--emit-locations`); with them the scheduled IR is translated to
the bytes of the program, without them to the same program with other names.
"""

import os
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


VALUE = re.compile(r"%[\w.$-]+")
NAME = re.compile(r"[A-Za-z_]\w*")
RECORD = re.compile(rb'\.(options|compilation) = ".*",\n')
# Of the lines of a program, those that its IR does not have: the report, and how it was compiled.
OWN = re.compile(r'\s*("|#include "kernels.h"|\.(name|report|communicator|digest|options|compilation|modelFlops|peakSeconds) =)')


def files(folder):
    """Without what the program says of how it was compiled, which must differ: once each."""
    content = {}
    for path in folder.rglob("*"):
        if not path.is_file() or path.relative_to(folder).parts[0] in ("runtime", "base", "tokenizer"):
            continue
        content[path.relative_to(folder)] = path.read_bytes()
    name = pathlib.Path("train.cpp")
    content[name], count = RECORD.subn(b"", content[name])
    if count != 2:
        sys.exit(f"{folder / name}: got {count} records of the compilation, expected 2")
    return content


def check_phases(folder, model, options):
    """What is printed of each phase, with locations and without, is read back whole."""
    folder.mkdir()
    printing = ["--mlir-use-nameloc-as-prefix"]
    for phase in ("global", "local", "scheduled"):
        for locations in ([], ["--emit-locations"]):
            text, again = folder / f"{phase}{len(locations)}.mlir", folder / "again.mlir"
            training.run([training.tool(model), *options, f"--emit={phase}", *locations, "-o", text])
            debug = ["--mlir-print-debuginfo"] if locations else []
            training.run([training.tool("fsdp-opt"), text, *printing, *debug, "-o", again])
            if locations:
                training.same_bytes(text, again)
            # Values have other names, as they have no locations to take them from.
            elif VALUE.sub("%", text.read_text()) != VALUE.sub("%", again.read_text()):
                sys.exit(f"{text}: its text is not that of {again}, apart from the names of values")
    target = "cuda" if "--target=cuda" in options else "cpp"
    with_names, without = (training.run([training.tool("fsdp-translate"), f"--fsdp-to-{target}", folder / f"scheduled{i}.mlir"]).stdout
                           for i in (1, 0))
    # Where long lines break depends on the lengths of names.
    if NAME.sub("x", " ".join(with_names.split())) != NAME.sub("x", " ".join(without.split())):
        sys.exit(f"{folder}: without locations the scheduled IR is another program, not only its names")
    training.run([training.tool(model), *options, "--emit=source", "-o", folder / "source"])
    lines = set(with_names.splitlines())
    own = (folder / "source" / "train.cpp").read_text().splitlines()
    lost = [line for line in own if line not in lines and not OWN.match(line)]
    if lost or len(own) < 100:
        sys.exit(f"{folder}: with locations the scheduled IR is translated to other lines than the program's: {lost[:3]}")


def main():
    os.environ.update(training.unoptimized())
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
        for i in training.chosen(range(len(OPTIONS)), 2, 4):
            options = OPTIONS[i]
            direct, through = here / f"direct-{i}", here / f"through-{i}"
            training.run([training.tool(model), *own, *options, "--emit=source", "-o", direct])
            training.run([training.tool("fsdpc"), text, *options, "--emit=source", "-o", through])
            ours, theirs = files(direct), files(through)
            different = sorted(str(name) for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
            if different or len(ours) < 4:
                sys.exit(f"{model} {' '.join(options)}: {different} of {sorted(map(str, ours))} differ")
            if i in (2, 4):
                check_phases(here / f"phases-{i}", model, [*own, *options])
    print(f"{len(MODELS)} models")


if __name__ == "__main__":
    main()
