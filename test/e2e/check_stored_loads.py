#!/usr/bin/env python3
"""check_stored_loads.py FOLDER: a product that its kernel uses and leaves, in the place of its first result.

In bf16 the product lies where `relu(q - y)` is then written, and `q` is stored as f32 after that. Numbers are
small multiples of a half, so every sum is exact and the program's loss, compiled for the CPU, is the very
number of the typed interpreter, on one rank and on two that the batch does not divide by.
"""

import json
import os
import pathlib
import random
import struct
import sys

import training
from check_refusals import write

B, IN, OUT = 7, 6, 8
X, Y, W, U = (f"tensor<{s}xf32>" for s in (f"{B}x{IN}", f"{B}x{OUT}", f"{IN}x{OUT}", f"{OUT}x{OUT}"))
MODEL = f"""
module @stored_loads {{
  fsdp.mesh @mesh <["fsdp"=1]>
  fsdp.param @w : {W} unit "a" init <constant, 1.0>
  fsdp.param @u : {U} unit "b" init <constant, 1.0>
  fsdp.step @train train optimizer <sgd, lr = 0.03125> {{
    %x = fsdp.input "x" sample_dim 0 : {X}
    %y = fsdp.input "y" sample_dim 0 : {Y}
    %w = fsdp.read @w : {W}
    %u = fsdp.read @u : {U}
    %q = nn.einsum "bi,io->bo" %x, %w : ({X}, {W}) -> {Y}
    %zero = arith.constant dense<0.0> : {Y}
    %d = arith.subf %q, %y : {Y}
    %r = arith.maximumf %d, %zero : {Y}
    %p = nn.einsum "bo,oj->bj" %r, %u : ({Y}, {U}) -> {Y}
    %s = arith.addf %q, %y : {Y}
    %z = arith.addf %p, %s : {Y}
    %e = arith.subf %z, %y : {Y}
    %f = arith.mulf %e, %e : {Y}
    %sum = nn.reduce sum "b o ->" %f : {Y} -> tensor<f64>
    %count = arith.constant dense<64.0> : tensor<f64>
    fsdp.loss %sum over %count
  }}
}}
"""


def single(number):
    return struct.pack("<f", number)


def main(folder):
    os.environ.update(training.unoptimized())
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(3)

    def halves(count):
        return [draw.randrange(-3, 4) / 2 for _ in range(count)]

    data = write(folder / "data.safetensors", {"x": ("F32", (B, IN), halves(B * IN)), "y": ("F32", (B, OUT), halves(B * OUT))})
    init = write(folder / "init.safetensors", {"w": ("F32", (IN, OUT), halves(IN * OUT)), "u": ("F32", (OUT, OUT), halves(OUT * OUT))})
    source = folder / "model.mlir"
    source.write_text(MODEL)
    for ranks in (1, 2):
        options = [source, f"--mesh=fsdp={ranks}", "--precision=bf16"]
        scheduled, program = folder / f"scheduled-{ranks}.mlir", folder / f"train-{ranks}"
        training.run([training.tool("fsdpc"), *options, "--emit=scheduled", "-o", scheduled])
        said = training.run([training.tool("fsdp-run"), scheduled, f"--inputs={data}", f"--params={init}",
                             "--numerics=typed"]).stdout
        expected = next(float(line.split()[-1]) for line in said.splitlines() if line.startswith("step 1 loss"))
        training.run([training.tool("fsdpc"), *options, "-o", program])
        log, _ = training.train(program, f"log-{ranks}", 1, init, data)
        got = json.loads(log.read_text().splitlines()[0])["loss"]
        if single(got) != single(expected):  # the log has enough digits to distinguish f32 values
            sys.exit(f"on {ranks} ranks: got loss {got}, expected {expected}")
        print(f"{ranks} ranks: loss {got}, the interpreter's bits")


if __name__ == "__main__":
    main(*sys.argv[1:])
