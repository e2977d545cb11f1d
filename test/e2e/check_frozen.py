#!/usr/bin/env python3
"""check_frozen.py SCRATCH: frozen parameters of test/e2e/models/frozen.cpp have no gradient and no optimizer state; they are
loaded, used and exported, on every mesh, and the others train as they do on one rank."""

import json
import os
import pathlib
import random
import re
import sys

import training
import weights as safetensors
from check_refusals import write

SHAPES = {"base.weight": [6, 5], "base.shift.bias": [5], "head.scale": [5], "head.weight": [5, 3], "head.bias": [3]}
FROZEN = {"base.weight", "base.shift.bias", "head.scale"}
MESHES = [("fsdp=1", []), ("fsdp=2", []), ("data=2", ["--strategy=ddp"]), ("data=2,fsdp=2", ["--prefetch=2"]),
          ("fsdp=3", ["--shard=base.weight:0", "--shard=head.bias:replicated"]), ("fsdp=2", ["--precision=bf16"])]


def main():
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(sys.argv[1])
    numbers = random.Random(3)

    def tensor(shape):
        count = 1
        for size in shape:
            count *= size
        return "F32", shape, [numbers.gauss(0, 1) for _ in range(count)]

    folder.mkdir(parents=True, exist_ok=True)
    init = write(folder / "init.safetensors", {name: tensor(shape) for name, shape in SHAPES.items()})
    data = write(folder / "data.safetensors", {"x": tensor([14, 6]), "y": tensor([14, 3])})
    before, losses = safetensors.read(init), []
    for i, (mesh, options) in enumerate(MESHES):
        options = ["--optimizer=adam", "--lr=0.05", *options]
        program = training.compile_model("frozen", folder / str(i), *options, mesh=mesh)
        log, exported = training.train(program, "run", 5, init, data)
        if i == 0:
            said = training.run([program, "--data", data, "--steps", 1]).stdout
            if "frozen: 18 of 58 parameters trainable, 1 rank" not in said:
                sys.exit(f"the frozen parameters are not told: {said}")
        after = safetensors.read(exported)
        changed = {name for name in SHAPES if after[name][2] != before[name][2]}
        if changed != SHAPES.keys() - FROZEN or list(after) != list(SHAPES):
            sys.exit(f"{mesh} {options}: {changed} of {list(after)} changed")
        losses.append([json.loads(line)["loss"] for line in log.read_text().splitlines()])
        scheduled = training.run([training.tool("frozen"), f"--mesh={mesh}", *options, "--emit=scheduled"]).stdout
        for line in re.findall(r"fsdp\.storage .*", scheduled):
            members = set(re.findall(r"#fsdp\.member<@([\w.]+) at", line))
            if ("states []" in line) != (members <= FROZEN) or (members & FROZEN and members - FROZEN):
                sys.exit(f"{mesh} {options}: a storage keeps the wrong states: {line}")
    for loss, (mesh, options) in zip(losses, MESHES):
        allowed = 0.02 if "--precision=bf16" in options else 1e-6
        if any(abs(a - b) > allowed * abs(b) for a, b in zip(loss, losses[0])) or loss[-1] >= loss[0]:
            sys.exit(f"{mesh} {options}: losses {loss}, expected {losses[0]}")
    print(f"{len(MESHES)} placements; losses {losses[0]}")


if __name__ == "__main__":
    main()
