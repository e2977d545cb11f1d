#!/usr/bin/env python3
"""check_cuda_columns.py SCRATCH: reductions over the rows and over the columns of matrices, in the CUDA program, emulated.

Matrices of few and many rows, with columns that vectors divide and that they do not: results of a thread, of lanes of a
block, of several blocks; and long rows, of which a block or several have one. Elements are small integers, so that every sum is exact: the weights after a step, which are what
the reductions give, are the CPU program's bits. Then a gpt2 with so many tokens that blocks share the rows of its biases'
gradients, in f32 and bf16: close to the CPU program's. No order of threads changes a bit, and nothing races.
"""

import os
import pathlib
import random
import re
import sys

import emulated
import training
from check_cuda import TOLERANCES
from check_cuda_heads import tokens
from check_refusals import write

# Shape of a sample, of which there are two; what is done to it; its result.
CASES = {
    "few": ("8x96", "sum", "s r c -> c", "96"),
    "two": ("7", "sum", "s c -> c", "7"),
    "one": ("1x5", "sum", "s r c -> s c", "2x5"),
    "odd": ("50x7", "sum", "s r c -> c", "7"),
    "idle": ("25x36", "max", "s r c -> c", "36"),
    "pairs": ("500x90", "sum", "s r c -> c", "90"),
    "wide": ("129x1030", "max", "s r c -> c", "1030"),
    "narrow": ("3000x1", "sum", "s r c -> c", "1"),
    "four": ("6000x4", "max", "s r c -> c", "4"),
    "many": ("10000x64", "sum", "s r c -> c", "64"),
    "most": ("10000x64", "max", "s r c -> c", "64"),
    "single": ("9001x3", "sum", "s r c -> c", "3"),
    "row": ("100003", "sum", "s c -> s", "2"),
    "rows": ("140001", "sum", "s c -> s", "2"),
    "whole": ("1x80003", "max", "s r c -> r", "1"),
    "nested": ("15x12x100x20", "sum", "s a h r c -> h c", "12x20"),
}
GPT2 = ["--layers=1", "--width=16", "--heads=2", "--context=70", "--vocab=77", "--batch=20", "--clip=1", "--eps=1e-4"]


def sizes(shape):
    return tuple(map(int, shape.split("x")))


def model():
    """Each result times a parameter is summed: the parameter's gradient is the result. The loss has the sum of all of `rows`, in double, too."""
    lines = ['module @columns {', '  fsdp.mesh @mesh <["fsdp"=1]>']
    for name, (_, _, _, result) in CASES.items():
        lines.append(f'  fsdp.param @{name} : tensor<{result}xf32> unit "u" init <constant, 1.0>')
    lines.append("  fsdp.step @train train optimizer <sgd, lr = 0.5> {")
    for name, (shape, _, _, result) in CASES.items():
        lines += [f'    %x_{name} = fsdp.input "{name}" sample_dim 0 : tensor<2x{shape}xf32>',
                  f"    %p_{name} = fsdp.read @{name} : tensor<{result}xf32>"]
    lines.append("    %sum = arith.constant dense<0.0> : tensor<f64>")
    total = "sum"
    for name, (shape, kind, notation, result) in CASES.items():
        kept = notation.split(" -> ")[1]
        lines += [f'    %r_{name} = nn.reduce {kind} "{notation}" %x_{name} : tensor<2x{shape}xf32> -> tensor<{result}xf32>',
                  f"    %t_{name} = arith.mulf %r_{name}, %p_{name} : tensor<{result}xf32>",
                  f'    %s_{name} = nn.reduce sum "{kept} ->" %t_{name} : tensor<{result}xf32> -> tensor<f64>',
                  f"    %l_{name} = arith.addf %{total}, %s_{name} : tensor<f64>"]
        total = f"l_{name}"
    shape = CASES["rows"][0]
    lines += [f'    %all = nn.reduce sum "s c ->" %x_rows : tensor<2x{shape}xf32> -> tensor<f64>',
              f"    %loss = arith.addf %{total}, %all : tensor<f64>"]
    total = "loss"
    return "\n".join([*lines, "    %count = arith.constant dense<64.0> : tensor<f64>", f"    fsdp.loss %{total} over %count",
                      "  }", "}", ""])


def same(folder, data, init):
    """The reductions alone, bit by bit."""
    source, options = folder / "columns.mlir", ["--lr=0.5", "--clip=0"]
    source.write_text(model())
    training.run([training.tool("fsdpc"), source, "-o", folder / "cpu"])
    expected_log, expected = training.train(folder / "cpu", "cpu", 1, init, data)
    training.run([training.tool("fsdpc"), source, "--target=cuda", "--emit=source", "-o", folder / "sources"])
    text = (folder / "sources" / "kernels.cu").read_text()
    for words in (r"reduceLanes<Plus, ", r"reduceLanes<Maximum, ", r"combineStripes<Plus, ", r"combineStripes<Maximum, ", r"load<4>",
                  r"load<2>", r"results per thread", r"One thread per result", r"One block per result", r"blocks per result"):
        if not re.search(words, text):
            sys.exit(f"no kernel has {words}: the cases miss it")
    for races in (False, True) if "race-flags" in emulated.settings() else (False,):
        program = emulated.build(folder / "sources", folder / f"cuda{'-races' * races}", races)
        for mode in ("races,shuffle,seed=2",) if races else ("inline", "deferred,shuffle,seed=5"):
            log, weights = emulated.train(program, f"cuda-{mode}", 1, init, data, mode=mode)
            training.same_bytes(weights, expected)
            training.compare_log(log, expected_log, "--loss=0")
    print(f"columns: {len(CASES)} reductions have the CPU's bits")


def close(folder):
    """The gradients of biases, with what is computed and stored on the way."""
    data = tokens(folder / "tokens.bin", 20 * 70)
    for precision, (to_cpu, weights_to_cpu, _) in training.chosen(TOLERANCES, "bf16").items():
        place, options = folder / precision, [*GPT2, f"--precision={precision}"]
        cpu, init = training.compile_model("gpt2", place, *options), folder / f"{precision}.safetensors"
        training.run([cpu, "--data", data, "--steps", 1, "--lr", 0, "--export", init])
        expected, expected_weights = training.train(cpu, "cpu", 1, init, data)
        program = emulated.compile_model("gpt2", place, *options)
        if "_total_kernel" not in (place / "cuda-1" / "kernels.cu").read_text():
            sys.exit(f"{precision}: no blocks share rows")
        log, weights = emulated.train(program, "cuda", 1, init, data)
        training.compare_log(log, expected, *to_cpu)
        training.compare_weights(weights, expected_weights, weights_to_cpu)
        late, late_weights = emulated.train(program, "late", 1, init, data, mode="deferred,shuffle,seed=5")
        training.compare_log(late, log, "--loss=0", "--grad_norm=0")
        training.same_bytes(late_weights, weights)


def main(scratch):
    folder, draw = pathlib.Path(scratch), random.Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(training.unoptimized())
    inputs, weights, values = {}, {}, [float(value) for value in range(-9, 10)]
    for name, (shape, _, _, result) in CASES.items():
        whole, count, size = (2, *sizes(shape)), 2, 1
        for extent in sizes(shape):
            count *= extent
        for extent in sizes(result):
            size *= extent
        inputs[name] = ("F32", whole, draw.choices(values, k=count))
        weights[name] = ("F32", sizes(result), [1.0] * size)
    same(folder, write(folder / "data.safetensors", inputs), write(folder / "init.safetensors", weights))
    close(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
