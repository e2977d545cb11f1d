#!/usr/bin/env python3
"""check_fused_product.py SCRATCH: fusing products with kernels changes no bit.

One model is written twice: as it is, and with reshapes between each product and what follows, which
move nothing but keep the two in launches of their own. Both take the same steps on two ranks, in f32
and bf16; logs and parameters are the same bytes. The model has what products are fused with: a bias and
a function with two results, a residual, and in backward a gradient with the sum over its rows. It has
rows enough for blocks, of which the last is smaller.
"""

import pathlib
import random
import sys

import training
from check_refusals import write

BATCH, TIME, WIDTH, HIDDEN, STEPS = 4, 300, 72, 264, 3


def model(apart):
    """Text of the model; `apart` keeps products and kernels apart."""
    rows = BATCH * TIME
    shape = lambda n: f"tensor<{rows}x{n}xf32>" if apart else f"tensor<{BATCH}x{TIME}x{n}xf32>"
    whole = lambda n: f"tensor<{BATCH}x{TIME}x{n}xf32>"
    repeat = '"f -> r f"' if apart else '"f -> b t f"'
    lines = ['fsdp.mesh @mesh <["fsdp"=2]>']
    for name, dims in (("up", f"{WIDTH}x{HIDDEN}"), ("up.bias", HIDDEN), ("down", f"{HIDDEN}x{WIDTH}"),
                       ("down.bias", WIDTH)):
        lines.append(f'fsdp.param @{name} : tensor<{dims}xf32> unit "u" init <normal, 0.1>')
    lines += ["fsdp.step @train train optimizer <adamw, lr = 0.01> {",
              f'%x = fsdp.input "x" sample_dim 0 : {whole(WIDTH)}',
              f'%y = fsdp.input "y" sample_dim 0 : {whole(WIDTH)}']

    def view(name, result, size, merge):
        """`name` in the shape that kernels, or products, work on."""
        if not apart:
            return name
        pattern = "b t f -> (b t) f" if merge else "(b t) f -> b t f"
        types = (whole(size), shape(size)) if merge else (shape(size), whole(size))
        lines.append(f'{result} = nn.rearrange "{pattern}" {name} : {types[0]} -> {types[1]}')
        return result

    def layer(name, source, weight, bias, inner, outer):
        lines.append(f"%{name}.w = fsdp.read @{weight} : tensor<{inner}x{outer}xf32>")
        lines.append(f"%{name}.b = fsdp.read @{bias} : tensor<{outer}xf32>")
        lines.append(f'%{name}.z = nn.einsum "btd,df->btf" {source}, %{name}.w : '
                     f"({whole(inner)}, tensor<{inner}x{outer}xf32>) -> {whole(outer)}")
        product = view(f"%{name}.z", f"%{name}.v", outer, merge=True)
        lines.append(f"%{name}.r = nn.repeat {repeat} %{name}.b : tensor<{outer}xf32> -> {shape(outer)}")
        lines.append(f"%{name}.a = arith.addf {product}, %{name}.r : {shape(outer)}")
        return f"%{name}.a"

    up = layer("up", "%x", "up", "up.bias", WIDTH, HIDDEN)
    lines.append(f"%t = math.tanh {up} : {shape(HIDDEN)}")
    lines.append(f"%h = arith.mulf {up}, %t : {shape(HIDDEN)}")
    down = layer("down", view("%h", "%hw", HIDDEN, merge=False), "down", "down.bias", HIDDEN, WIDTH)
    lines.append(f"%o = arith.addf {down}, {view('%x', '%xv', WIDTH, merge=True)} : {shape(WIDTH)}")
    output = view("%o", "%ow", WIDTH, merge=False)
    lines += [f"%d = arith.subf {output}, %y : {whole(WIDTH)}", f"%q = arith.mulf %d, %d : {whole(WIDTH)}",
              f'%sum = nn.reduce sum "b t f ->" %q : {whole(WIDTH)} -> tensor<f64>',
              f"%one = arith.constant dense<1.0> : {whole(WIDTH)}",
              f'%weight = nn.reduce sum "b t f ->" %one : {whole(WIDTH)} -> tensor<f64>',
              "fsdp.loss %sum over %weight", "}"]
    return "\n".join(lines) + "\n"


def main(scratch):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True)
    draw = random.Random(3)
    data = {name: ("F32", (2 * BATCH, TIME, WIDTH), [draw.gauss(0, 1) for _ in range(2 * BATCH * TIME * WIDTH)])
            for name in ("x", "y")}
    write(folder / "data.safetensors", data)
    for precision in ("f32", "bf16"):
        results = []
        for apart in (False, True):
            name = f"{precision}-{'apart' if apart else 'fused'}"
            text, program = folder / f"{name}.mlir", folder / name
            text.write_text(model(apart))
            command = [training.tool("fsdpc"), text, f"--precision={precision}"]
            training.run([*command, "-o", program])
            training.run([*command, "--record", "-o", f"{program}-record"])
            launches = training.run([f"{program}-record"]).stdout.count('launch compute')
            training.run([program, "--data", folder / "data.safetensors", "--steps", STEPS,
                          "--export", f"{program}.safetensors"])
            results.append((launches, pathlib.Path(f"{program}.safetensors").read_bytes()))
        (fused, ours), (apart, expected) = results
        if apart - fused < 3:
            sys.exit(f"{precision}: got {fused} launches fused and {apart} apart, expected 3 more at least")
        if ours != expected:
            sys.exit(f"{precision}: parameters differ between products fused and apart")
        print(f"{precision}: {apart} launches or {fused}, the same bytes")


if __name__ == "__main__":
    main(sys.argv[1])
