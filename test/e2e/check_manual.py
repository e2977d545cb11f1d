#!/usr/bin/env python3
"""check_manual.py SCRATCH BIN: losses and gradients of regions in local terms are those of jax.shard_map.

The rows of the table in docs/manual-regions.md; test/golden/make_manual.py has the same regions. Each is differentiated and run
by the interpreter: as it is written, as a step of one device, and on four ranks. Learning rate 1: a parameter minus what it becomes is
its gradient.
"""

import json
import pathlib
import subprocess
import sys

import from_cases
import weights

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "manual" / "rows.json"
I, J, IJ = '["fsdp"]', '["tensor"]', '["fsdp", "tensor"]'
INDEX = """
    %index = fsdp.axis_index over {over}
    %number = arith.sitofp %index : tensor<i64> to tensor<f32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %next = arith.addf %number, %one : tensor<f32>
    %scale = nn.repeat "-> a b" %next : tensor<f32> -> tensor<{shape}xf32>"""


def scaled(shape, over=I):
    return INDEX.format(shape=shape, over=over)


# name -> (axes, shardings of v, w, x and the result, local sizes of v, w, x, size of the result, the region)
ROWS = {
    "psum": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", "{}, {}", "4x4", "4x4", "8x4", "4x4", """
    %t = math.tanh %v : tensor<4x4xf32>
    %y = fsdp.psum %t over ["fsdp"] : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "psum of partial": (I, '{}, {}], unreduced = {"fsdp"', "{}, {}", "{}, {}", "{}, {}", "8x4", "4x4", "8x4", "8x4", """
    %p = nn.einsum "bi,io->bo" %v, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %two = arith.constant dense<2.0> : tensor<8x4xf32>
    %q = arith.mulf %p, %two : tensor<8x4xf32>
    %s = arith.addf %v, %q : tensor<8x4xf32>
    %y = fsdp.psum %s over ["fsdp"] : tensor<8x4xf32>
    fsdp.yield %y : tensor<8x4xf32>"""),
    "psum of invariant": (I, "{}, {}", "{}, {}", "{}, {}", "{}, {}", "8x4", "4x4", "8x4", "4x4", """
    %s = fsdp.psum %w over ["fsdp"] : tensor<4x4xf32>
    %y = math.tanh %s : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "pvary": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "4x4", "4x4", "8x4", "8x4", """
    %p = nn.einsum "bi,io->bo" %v, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = math.tanh %p : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "pvary written": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "4x4", "4x4", "8x4", "8x4", scaled("4x4") + """
    %own = fsdp.pvary %w over ["fsdp"] : tensor<4x4xf32>
    %p = arith.mulf %v, %own : tensor<4x4xf32>
    %y = arith.mulf %p, %scale : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "invariant as split": (I, "{}, {}", "{}, {}", "{}, {}", '{"fsdp"}, {}', "8x4", "4x4", "8x4", "8x4", """
    fsdp.yield %w : tensor<4x4xf32>"""),
    "partial as result": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{}, {}], unreduced = {"fsdp"', "4x4", "4x4", "8x4", "4x4", """
    %y = nn.einsum "bi,bo->io" %v, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "pgather": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "4x4", "4x4", "8x4", "8x4", scaled("4x4") + """
    %all = fsdp.pgather %v dim 0 over ["fsdp"] : tensor<4x4xf32> -> tensor<8x4xf32>
    %p = nn.einsum "bi,bo->io" %all, %all : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %s = arith.mulf %p, %scale : tensor<4x4xf32>
    %y = math.tanh %s : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "psum_scatter": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{}, {"fsdp"}', "4x4", "4x4", "8x4", "4x4", """
    %t = math.tanh %v : tensor<4x4xf32>
    %y = fsdp.psum_scatter %t dim 1 over ["fsdp"] : tensor<4x4xf32> -> tensor<4x2xf32>
    fsdp.yield %y : tensor<4x2xf32>"""),
    "pswap": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{}, {"fsdp"}', "4x4", "4x4", "8x4", "8x4", scaled("8x2") + """
    %p = fsdp.pswap %v split 1 concat 0 over ["fsdp"] : tensor<4x4xf32> -> tensor<8x2xf32>
    %s = arith.mulf %p, %scale : tensor<8x2xf32>
    %y = math.tanh %s : tensor<8x2xf32>
    fsdp.yield %y : tensor<8x2xf32>"""),
    "ppermute": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "4x4", "4x4", "8x4", "8x4", scaled("4x4") + """
    %p = fsdp.ppermute %v from [1, 0] over ["fsdp"] : tensor<4x4xf32>
    %s = arith.mulf %p, %scale : tensor<4x4xf32>
    %y = math.tanh %s : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "ppermute of some": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "4x4", "4x4", "8x4", "8x4", scaled("4x4") + """
    %p = fsdp.ppermute %v from [-1, 0] over ["fsdp"] : tensor<4x4xf32>
    %s = arith.mulf %p, %scale : tensor<4x4xf32>
    %t = math.tanh %s : tensor<4x4xf32>
    %y = arith.addf %t, %v : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "pmax": (I, '{"fsdp"}, {}', "{}, {}", '{"fsdp"}, {}', '{"fsdp"}, {}', "4x4", "4x4", "4x4", "8x4", """
    %m = fsdp.pmax %x over ["fsdp"] : tensor<4x4xf32>
    %y = arith.mulf %v, %m : tensor<4x4xf32>
    fsdp.yield %y : tensor<4x4xf32>"""),
    "two axes": (IJ, '{"fsdp", "tensor"}, {}', "{}, {}", "{}, {}", "{}, {}", "2x4", "4x4", "8x4", "2x4", """
    %t = math.tanh %v : tensor<2x4xf32>
    %y = fsdp.psum %t over ["fsdp", "tensor"] : tensor<2x4xf32>
    fsdp.yield %y : tensor<2x4xf32>"""),
    "one of two axes": (IJ, '{"fsdp", "tensor"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "2x4", "4x4", "8x4", "4x4", scaled("2x4", IJ) + """
    %t = math.tanh %v : tensor<2x4xf32>
    %s = arith.mulf %t, %scale : tensor<2x4xf32>
    %y = fsdp.psum %s over ["tensor"] : tensor<2x4xf32>
    fsdp.yield %y : tensor<2x4xf32>"""),
    # A product of an operand that varies over no axis and one that varies over one, then a sum with a value that varies over the other.
    "varying one axis at a time": (IJ, '{}, {"tensor"}', "{}, {}", '{"fsdp"}, {}', '{"fsdp"}, {"tensor"}', "8x2", "4x4", "4x4", "8x16", """
    %a = nn.reduce sum "a b -> a" %w : tensor<4x4xf32> -> tensor<4xf32>
    %b = nn.reduce sum "a b -> a" %v : tensor<8x2xf32> -> tensor<8xf32>
    %p = nn.einsum "a,b->ab" %a, %b : (tensor<4xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %c = nn.reduce sum "a b -> a" %x : tensor<4x4xf32> -> tensor<4xf32>
    %r = nn.repeat "a -> a b" %c : tensor<4xf32> -> tensor<4x8xf32>
    %s = arith.addf %p, %r : tensor<4x8xf32>
    %y = math.tanh %s : tensor<4x8xf32>
    fsdp.yield %y : tensor<4x8xf32>"""),
    "nested": (I, '{"fsdp"}, {}', "{}, {}", "{}, {}", '{"fsdp"}, {}', "4x4", "4x4", "8x4", "8x4", """
    %joined = fsdp.manual(%v, %w) over ["tensor"] in [#fsdp.sharding<@mesh, [{}, {"tensor"}]>, #fsdp.sharding<@mesh, [{"tensor"}, {}]>]
        out [#fsdp.sharding<@mesh, [{}, {}]>] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%columns: tensor<4x2xf32>, %rows: tensor<2x4xf32>):
      %p = nn.einsum "bi,io->bo" %columns, %rows : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
      %s = fsdp.psum %p over ["tensor"] : tensor<4x4xf32>
      %t = math.tanh %s : tensor<4x4xf32>
      fsdp.yield %t : tensor<4x4xf32>
    }
    fsdp.yield %joined : tensor<4x4xf32>"""),
}
MODULE = """fsdp.mesh @mesh <["fsdp"=2{more}]>
fsdp.param @v : tensor<8x4xf32> unit "v" init <constant, 0.0>
fsdp.param @w : tensor<4x4xf32> unit "w" init <constant, 0.0>
fsdp.step @train train optimizer <sgd, lr = 1.0> {{
  %data = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
  %pv = fsdp.read @v : tensor<8x4xf32>
  %pw = fsdp.read @w : tensor<4x4xf32>
  %result = fsdp.manual(%pv, %pw, %data) over {axes}
      in [#fsdp.sharding<@mesh, [{vs}{vc}>, #fsdp.sharding<@mesh, [{ws}]>, #fsdp.sharding<@mesh, [{xs}]>]
      out [#fsdp.sharding<@mesh, [{ys}{yc}>]
      : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>) -> tensor<{y}xf32> {{
  ^bb0(%v: tensor<{v}xf32>, %w: tensor<{w}xf32>, %x: tensor<{x}xf32>):{region}
  }}
  %square = arith.mulf %result, %result : tensor<{y}xf32>
  // Every parameter counts; what a region leaves out does so by nothing.
  %zero = arith.constant dense<0.0> : tensor<f64>
  %vs = nn.reduce sum "a b ->" %pv : tensor<8x4xf32> -> tensor<f64>
  %ws = nn.reduce sum "a b ->" %pw : tensor<4x4xf32> -> tensor<f64>
  %vz = arith.mulf %vs, %zero : tensor<f64>
  %wz = arith.mulf %ws, %zero : tensor<f64>
  %own = nn.reduce sum "a b ->" %square : tensor<{y}xf32> -> tensor<f64>
  %with = arith.addf %own, %vz : tensor<f64>
  %sum = arith.addf %with, %wz : tensor<f64>
  %weight = arith.constant dense<1.0> : tensor<f64>
  fsdp.loss %sum over %weight
}}
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def close(text):
    return "}>" if "unreduced" in text else "]>"


def main(scratch, tools):
    scratch, tools = pathlib.Path(scratch), pathlib.Path(tools)
    scratch.mkdir(parents=True, exist_ok=True)
    golden = json.loads(GOLDEN.read_text())
    assert golden["rows"].keys() == ROWS.keys(), golden["rows"].keys() ^ ROWS.keys()
    given = golden["given"]
    shapes = {"v": (8, 4), "w": (4, 4), "x": (8, 4)}
    from_cases.write_safetensors(scratch / "params.safetensors", {name: ("F32", shapes[name], given[name]) for name in "vw"})
    from_cases.write_safetensors(scratch / "data.safetensors", {"x": ("F32", shapes["x"], given["x"])})
    for name, (axes, vs, ws, xs, ys, v, w, x, y, region) in ROWS.items():
        stem = name.replace(" ", "-")
        model = scratch / f"{stem}.mlir"
        model.write_text(MODULE.format(axes=axes, more=', "tensor"=2' if '"tensor"' in axes + region else "", vs=vs, vc=close(vs)[:-1], ws=ws, xs=xs, ys=ys, yc=close(ys)[:-1], v=v, w=w,
                                       x=x, y=y, region=region))
        expected = golden["rows"][name]
        for phase in ("model", "global", "local", "scheduled"):
            lowered, updated = scratch / f"{stem}.{phase}.mlir", scratch / f"{stem}.{phase}.safetensors"
            run(tools / "fsdp-opt", model, *([] if phase == "model" else [f"--fsdp-to-{phase}"]), "-o", lowered)
            log = run(tools / "fsdp-run", lowered, f"--params={scratch / 'params.safetensors'}",
                      f"--inputs={scratch / 'data.safetensors'}", f"--outputs={updated}", "--segment=train")
            loss = float(log.split("step 1 loss ")[1].split()[0])
            assert abs(loss - expected["loss"]) <= 1e-6 * max(1, abs(expected["loss"])), (name, phase, loss, expected["loss"])
            if phase == "model":  # which computes the loss alone
                continue
            after = weights.read(updated)
            for parameter in "vw":
                gradient = [old - new for old, new in zip(given[parameter], after[parameter][2])]
                largest = max(1, max(map(abs, expected[parameter])))
                for got, want in zip(gradient, expected[parameter]):
                    assert abs(got - want) <= 1e-6 * largest, (name, phase, parameter, gradient, expected[parameter])


if __name__ == "__main__":
    main(*sys.argv[1:])
