"""Compares phases of random models whose values have random constraints, in microbatches (same_numbers.py).

    random_constraints.py FSDP_OPT FSDP_RUN WORK FIRST LAST

For each seed in [FIRST, LAST) writes a model of layers over [samples, positions, features] with constraints that are open or
closed, over any axes, on any dimension, and runs it with an option of accumulation. No model may be refused: samples
come first everywhere, and ranks and microbatches divide the batch.
"""

import os
import random
import subprocess
import sys

SAME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "same_numbers.py")
MESHES = [{"fsdp": 2}, {"data": 2, "fsdp": 2}, {"fsdp": 2, "tensor": 2}, {"x": 2, "y": 2}, {"data": 3, "tensor": 2}]
BATCH = 48


def draw_spec(draw, axes, rank, split):
    """One entry for each dimension: axes, each used once, and perhaps `?`."""
    left = draw.sample(sorted(axes), len(axes))
    entries = []
    for _ in range(rank):
        taken = [left.pop() for _ in range(draw.choice((0, 0, 1, 1, 2))) if left]
        split.update(taken)
        entries.append("{" + ", ".join([f'"{axis}"' for axis in taken] + ["?"] * draw.randrange(2)) + "}")
    return f"<@mesh, [{', '.join(entries)}]>"


def write_model(draw, mesh, batch_axes, path):
    """Returns whether each axis of the mesh is used."""
    ops, params, used = [], [], set(batch_axes)
    shape, name, count = [BATCH, 6, 12], "%x", 0

    def add(text, result):
        nonlocal name, count
        count += 1
        ops.append(f"  %v{count} = {text}")
        name, _ = f"%v{count}", result

    def type_of(sizes):
        return "tensor<" + "x".join(map(str, sizes)) + "xf32>"

    for layer in range(draw.randrange(2, 5)):
        whole = type_of(shape)
        kind = draw.choice(("product", "product", "merge", "residual", "norm", "dropout"))
        if kind == "product":
            params.append(f'fsdp.param @w{layer} : tensor<12x12xf32> unit "u{layer}" init <normal, 0.5>')
            ops.append(f"  %w{layer} = fsdp.read @w{layer} : tensor<12x12xf32>")
            rule = "bsi,io->bso" if len(shape) == 3 else "bi,io->bo"
            add(f'nn.einsum "{rule}" {name}, %w{layer} : ({whole}, tensor<12x12xf32>) -> {whole}', whole)
        elif kind == "merge":
            merged = [BATCH * 6, 12] if len(shape) == 3 else [BATCH, 6, 12]
            rule = "b s d -> (b s) d" if len(shape) == 3 else "(b s) d -> b s d"
            sizes = "" if len(shape) == 3 else " {s = 6}"
            add(f'nn.rearrange "{rule}" {name}{sizes} : {whole} -> {type_of(merged)}', merged)
            shape = merged
        elif kind == "residual":
            other = name
            add(f"math.tanh {name} : {whole}", whole)
            add(f"arith.addf {name}, {other} : {whole}", whole)
        elif kind == "norm":
            add(f"nn.softmax {name} : {whole}", whole)
        else:
            add(f'fsdp.dropout {name} rate 0.25 name "d{layer}" : {whole}', whole)
        if draw.randrange(3):
            spec = draw_spec(draw, mesh, len(shape), used)
            add(f"fsdp.constraint {name} {spec} : {type_of(shape)}", shape)
    letters = "b s d" if len(shape) == 3 else "b d"
    whole = type_of(shape)
    if not params:
        return False
    with open(path, "w") as file:
        axes = ", ".join(f'"{axis}"={size}' for axis, size in mesh.items())
        file.write(f"fsdp.mesh @mesh <[{axes}]>\n" + "\n".join(params) + f"""
fsdp.step @train train optimizer <sgd, lr = 1.0e-01> {{
  %x = fsdp.input "x" sample_dim 0 : tensor<{BATCH}x6x12xf32>
""" + "\n".join(ops) + f"""
  %square = arith.mulf {name}, {name} : {whole}
  %sum = nn.reduce sum "{letters} ->" %square : {whole} -> tensor<f64>
  %weight = arith.constant dense<3456.0> : tensor<f64>
  fsdp.loss %sum over %weight
}}
""")
    return used == set(mesh)


def main():
    opt, execute, work, first, last = sys.argv[1:]
    os.makedirs(work, exist_ok=True)
    for seed in range(int(first), int(last)):
        draw = random.Random(seed)
        while True:
            mesh = draw.choice(MESHES)
            batch_axes = [axis for axis in mesh if axis in ("data", "fsdp") or (axis == "y")]
            model = os.path.join(work, f"{seed}.mlir")
            if write_model(draw, mesh, batch_axes, model):
                break
        options = [f"accumulate={draw.choice((2, 2, 3, 4) if 'data' not in mesh else (2, 2, 4))}"]
        options += ["batch-axes=y"] if "y" in mesh else []
        options += [draw.choice((f"strategy={'fsdp' if 'fsdp' in mesh else 'ddp'}", "strategy=ddp"))]
        options += draw.choice(([], ["accumulate-reduce=last"], ["precision=bf16"], ["remat=full"]))
        done = subprocess.run([sys.executable, SAME, opt, execute, model, os.path.join(work, str(seed)), *options],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"seed {seed}: {' '.join(options)}\n{done.stdout}{done.stderr}")
    print(f"same numbers: {int(last) - int(first)} models")


main()
