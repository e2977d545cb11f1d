#!/usr/bin/env python3
"""check_kernels.py SCRATCH: every op of the language, compiled, against the interpreter in double.

One module has a metric for each case: the sum of the op's result, each element weighted differently, so
that an element in a wrong place shows. The batch of 9 does not divide by the 2 ranks. Metrics of the
compiled program (f32 kernels) and of `fsdp-run` on the global module (exact) agree to 1e-5 of the sum of
magnitudes, and the record of the program is what its IR says.
"""

import json
import pathlib
import random
import subprocess
import sys

import training
import weights as safetensors
from check_refusals import write

B, D = 9, 6
X, ROW, FEATURE, INT = (f"tensor<{s}>" for s in (f"{B}x{D}xf32", f"{B}xf32", f"{D}xf32", f"{B}x{D}xi32"))
BOOL, LONG = INT.replace("i32", "i1"), INT.replace("i32", "i64")
UNARY = ["exp", "tanh", "erf", "absf", "sin", "cos"]
POSITIVE = ["log", "log1p", "sqrt", "rsqrt"]
BINARY = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf"]
ORDERED = ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]
INTEGER = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def einsum(notation, left, right, result):
    return [f'%r = nn.einsum "{notation}" %x, {left[0]} : ({X}, {left[1]}) -> {result}'] if not right else [
        f'%r = nn.einsum "{notation}" {left[0]}, {right[0]} : ({left[1]}, {right[1]}) -> {result}']


def cases():
    """(name, lines that define %r, its shape)."""
    for op in UNARY:
        yield op, [f"%r = math.{op} %x : {X}"], (B, D)
    for op in POSITIVE:
        yield op, [f"%r = math.{op} %p : {X}"], (B, D)
    for op in BINARY:
        yield op, [f"%r = arith.{op} %x, %p : {X}"], (B, D)
    yield "negf", [f"%r = arith.negf %x : {X}"], (B, D)
    yield "powf", [f"%r = math.powf %p, %x : {X}"], (B, D)
    yield "fma", [f"%r = math.fma %x, %p, %y : {X}"], (B, D)
    for op in ORDERED:
        yield f"cmpf_{op}", [f"%c = arith.cmpf {op}, %x, %y : {X}",
                             f"%r = arith.select %c, %x, %p : {BOOL}, {X}"], (B, D)
    for op in INTEGER:
        yield f"cmpi_{op}", [f"%c = arith.cmpi {op}, %i, %j : {INT}",
                             f"%r = arith.uitofp %c : {BOOL} to {X}"], (B, D)
    for op in ["addi", "subi", "muli", "andi", "ori", "xori"]:
        yield op, [f"%n = arith.{op} %i, %j : {INT}", f"%r = arith.sitofp %n : {INT} to {X}"], (B, D)
        yield f"{op}_i64", [f"%l = arith.extsi %i : {INT} to {LONG}", f"%m = arith.extsi %j : {INT} to {LONG}",
                            f"%n = arith.{op} %l, %m : {LONG}", f"%r = arith.sitofp %n : {LONG} to {X}"], (B, D)
    yield "cmpi_i64", [f"%l = arith.extsi %i : {INT} to {LONG}", f"%m = arith.extsi %j : {INT} to {LONG}",
                       f"%c = arith.cmpi ult, %l, %m : {LONG}", f"%r = arith.uitofp %c : {BOOL} to {X}"], (B, D)
    yield "uitofp", [f"%r = arith.uitofp %i : {INT} to {X}"], (B, D)
    yield "uitofp_i64", [f"%l = arith.extsi %i : {INT} to {LONG}", f"%r = arith.uitofp %l : {LONG} to {X}"], (B, D)
    yield "trunci_i1", [f"%c = arith.trunci %i : {INT} to {BOOL}", f"%r = arith.uitofp %c : {BOOL} to {X}"], (B, D)
    # A signed bit is 0 or -1.
    yield "sitofp_i1", [f"%c = arith.cmpi slt, %i, %j : {INT}", f"%r = arith.sitofp %c : {BOOL} to {X}"], (B, D)
    yield "extsi_i1", [f"%c = arith.cmpi slt, %i, %j : {INT}", f"%n = arith.extsi %c : {BOOL} to {INT}",
                       f"%r = arith.sitofp %n : {INT} to {X}"], (B, D)
    yield "fptosi", [f"%n = arith.fptosi %x : {X} to {INT}", f"%r = arith.sitofp %n : {INT} to {X}"], (B, D)
    yield "extsi", [f"%n = arith.extsi %i : {INT} to {LONG}", f"%m = arith.muli %n, %n : {LONG}",
                    f"%o = arith.trunci %m : {LONG} to {INT}", f"%r = arith.sitofp %o : {INT} to {X}"], (B, D)
    double = X.replace("f32", "f64")
    yield "double", [f"%d = arith.extf %x : {X} to {double}", f"%e = math.exp %d : {double}",
                     f"%r = arith.truncf %e : {double} to {X}"], (B, D)
    yield "reshard", [f'%g = fsdp.constraint %x <@mesh, [{{}}, {{}}]> : {X}',
                      f'%r = fsdp.constraint %g <@mesh, [{{"fsdp"}}, {{}}]> : {X}'], (B, D)
    yield "chain", [f"%a = math.tanh %x : {X}", f"%b = arith.mulf %a, %a : {X}",
                    f"%c = arith.subf %b, %y : {X}", f"%r = arith.addf %c, %a : {X}"], (B, D)

    yield "transpose", [f'%r = nn.rearrange "b d -> d b" %x : {X} -> tensor<{D}x{B}xf32>'], (D, B)
    yield "split", [f'%r = nn.rearrange "b (h e) -> h b e" %x : {X} -> tensor<2x{B}x3xf32>'], (2, B, 3)
    yield "merge", [f'%s = nn.rearrange "b (h e) -> b e h" %x : {X} -> tensor<{B}x2x3xf32>',
                    f'%r = nn.rearrange "b e h -> b (e h)" %s : tensor<{B}x2x3xf32> -> {X}'], (B, D)
    for kind in ["sum", "mean", "max"]:
        yield f"{kind}_rows", [f'%r = nn.reduce {kind} "b d -> b" %x : {X} -> {ROW}'], (B,)
        yield f"{kind}_batch", [f'%r = nn.reduce {kind} "b d -> d" %x : {X} -> {FEATURE}'], (D,)
        yield f"{kind}_middle", [f'%s = nn.einsum "bd,bf->bdf" %x, %y : ({X}, {X}) -> tensor<{B}x{D}x{D}xf32>',
                                 f'%r = nn.reduce {kind} "b d f -> d" %s : tensor<{B}x{D}x{D}xf32> -> {FEATURE}'], (D,)
    yield "centered", [f'%m = nn.reduce mean "b d -> b" %x : {X} -> {ROW}',
                       f'%e = math.exp %m : {ROW}', f'%s = nn.repeat "b -> b d" %e : {ROW} -> {X}',
                       f"%r = arith.subf %x, %s : {X}"], (B, D)
    yield "scaled", [f'%s = nn.repeat "d -> b d" %w : {FEATURE} -> {X}', f"%r = arith.mulf %x, %s : {X}"], (B, D)
    yield "spread", [f'%r = nn.repeat "b d -> d c b" %x : {X} -> tensor<{D}x2x{B}xf32>'], (D, 2, B)
    yield "splat", [f"%h = arith.constant dense<0.5> : {X}", f"%r = arith.mulf %x, %h : {X}"], (B, D)

    yield "table", [f"%c = arith.constant dense<[1.0, -2.0, 0.5, 3.0, -0.25, 4.0]> : {FEATURE}",
                    f'%s = nn.repeat "d -> b d" %c : {FEATURE} -> {X}', f"%r = arith.mulf %x, %s : {X}"], (B, D)

    square = f"tensor<{D}x{D}xf32>"
    outer = [f'%o = nn.einsum "bd,bf->bdf" %x, %y : ({X}, {X}) -> tensor<{B}x{D}x{D}xf32>']
    three = f"tensor<{B}x{D}x{D}xf32>"
    gram = [f'%g = nn.einsum "bd,bf->df" %x, %y : ({X}, {X}) -> {square}']
    yield "outer", [outer[0].replace("%o", "%r")], (B, D, D)
    yield "gram", [gram[0].replace("%g", "%r")], (D, D)
    yield "matrix", gram + [f'%r = nn.einsum "bd,df->bf" %x, %g : ({X}, {square}) -> {X}'], (B, D)
    yield "transposed", gram + [f'%r = nn.einsum "bd,fd->fb" %x, %g : ({X}, {square}) -> tensor<{D}x{B}xf32>'], (D, B)
    yield "dot", [f'%r = nn.einsum "bd,bd->b" %x, %y : ({X}, {X}) -> {ROW}'], (B,)
    yield "vector", [f'%r = nn.einsum "bd,d->b" %x, %w : ({X}, {FEATURE}) -> {ROW}'], (B,)
    yield "product", [f'%r = nn.einsum "bd,bd->bd" %x, %y : ({X}, {X}) -> {X}'], (B, D)
    yield "batched", outer + [f'%r = nn.einsum "bij,bjk->bik" %o, %o : ({three}, {three}) -> {three}'], (B, D, D)
    yield "apart", outer + [f'%r = nn.einsum "bij,ik->bkj" %o, %g0 : ({three}, {square}) -> {three}'], (B, D, D)

    yield "argmax", [f"%a = nn.argmax %x : {X} -> tensor<{B}xi32>",
                     f"%r = arith.sitofp %a : tensor<{B}xi32> to {ROW}"], (B,)
    yield "cross_entropy", [f"%r, %s = nn.cross_entropy %x, %label : {X}, tensor<{B}xi32> -> {ROW}, {ROW}"], (B,)
    yield "log_sum_exp", [f"%s, %r = nn.cross_entropy %x, %label : {X}, tensor<{B}xi32> -> {ROW}, {ROW}"], (B,)
    yield "cross_entropy_grad", [f"%s, %e = nn.cross_entropy %x, %label : {X}, tensor<{B}xi32> -> {ROW}, {ROW}",
                                 f"%r = nn.cross_entropy_grad %x, %label, %e, %s : {X}, tensor<{B}xi32>, {ROW}, {ROW}"], (B, D)
    yield "cross_entropy_grad_splat", [f"%s, %e = nn.cross_entropy %x, %label : {X}, tensor<{B}xi32> -> {ROW}, {ROW}",
                                       f"%q = arith.constant dense<0.25> : {ROW}",
                                       f"%r = nn.cross_entropy_grad %x, %label, %e, %q : {X}, tensor<{B}xi32>, {ROW}, {ROW}"], (B, D)


def weigh(name, lines, shape):
    """Defines the metric `name`: the sum of %r over all elements, times the cosines of %r's places."""
    letters = "abcdefgh"[:len(shape)]
    kind = "x".join(map(str, shape))
    result, factor = f"tensor<{kind}xf32>", {}
    text = list(lines)
    # A weight for each dimension whose size is that of the batch or of the features, as vectors that
    # inputs give: a row of %x's partner, or %w.
    last = "%r"
    for letter, size in zip(letters, shape):
        source = {B: ("%k", ROW), D: ("%w", FEATURE)}.get(size)
        if source and source[1] not in factor:
            factor[source[1]] = True
            text += [f'%u{letter} = nn.repeat "{letter} -> {" ".join(letters)}" {source[0]} : {source[1]} -> {result}',
                     f"%v{letter} = arith.mulf {last}, %u{letter} : {result}"]
            last = f"%v{letter}"
    text += [f'%sum = nn.reduce sum "{" ".join(letters)} ->" {last} : {result} -> tensor<f64>',
             f'fsdp.metric "{name}" %sum over %one']
    # Values of one case do not meet those of another.
    renamed = []
    shared = {"x", "y", "p", "i", "j", "k", "w", "label", "one", "g0"}
    import re
    for line in text:
        renamed.append(re.sub(r"%(\w+)", lambda m: m[0] if m[1] in shared else f"%{name}_{m[1]}", line))
    return renamed


def module():
    lines = ['module @kernels {', 'fsdp.mesh @mesh <["fsdp"=1]>',
             f'fsdp.param @fc.scale : {FEATURE} unit "fc" init <constant, 1.0>',
             f'fsdp.param @fc.mix : tensor<{D}x{D}xf32> unit "fc" init <constant, 1.0>',
             'fsdp.step @train train optimizer <sgd, lr = 0.1> {']
    lines += [f'%{n} = fsdp.input "{n}" sample_dim 0 : {X}' for n in "xyp"]
    lines += [f'%{n} = fsdp.input "{n}" sample_dim 0 : {INT}' for n in "ij"]
    lines += [f'%k = fsdp.input "k" sample_dim 0 : {ROW}',
              f'%label = fsdp.input "label" sample_dim 0 : tensor<{B}xi32>',
              f'%w = fsdp.read @fc.scale : {FEATURE}', f'%g0 = fsdp.read @fc.mix : tensor<{D}x{D}xf32>',
              '%one = arith.constant dense<1.0> : tensor<f64>']
    for name, body, shape in cases():
        lines += weigh(name, body, shape)
    lines += [f'%mixed = nn.einsum "bd,df->bf" %x, %g0 : ({X}, tensor<{D}x{D}xf32>) -> {X}',
              f'%scale = nn.repeat "d -> b d" %w : {FEATURE} -> {X}',
              f'%scaled = arith.mulf %mixed, %scale : {X}',
              f'%total = nn.reduce sum "b d ->" %scaled : {X} -> tensor<f64>',
              'fsdp.loss %total over %one', '}', '}']
    return "\n".join(lines) + "\n"


def main(scratch):
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(5)

    def floats(count, of=lambda: draw.gauss(0, 1)):
        return [of() for _ in range(count)]

    full = (B, D)
    data = write(folder / "data.safetensors", {
        "x": ("F32", full, floats(B * D)), "y": ("F32", full, floats(B * D)),
        "p": ("F32", full, floats(B * D, lambda: draw.uniform(0.2, 3))),
        "i": ("I32", full, floats(B * D, lambda: draw.randrange(-50, 50))),
        "j": ("I32", full, floats(B * D, lambda: draw.randrange(-50, 50))),
        "k": ("F32", (B,), floats(B)), "label": ("I32", (B,), floats(B, lambda: draw.randrange(D)))})
    init = write(folder / "init.safetensors", {
        "fc.scale": ("F32", (D,), floats(D)), "fc.mix": ("F32", (D, D), floats(D * D))})
    source = folder / "kernels.mlir"
    source.write_text(module())
    exact = folder / "exact.safetensors"
    training.run([training.tool("fsdp-run"), source, f"--inputs={data}", f"--params={init}", f"--outputs={exact}"])
    expected = {name[7:]: values[0] for name, (_, _, values) in safetensors.read(exact).items()
                if name.startswith("output.")}
    names = [name for name, _, _ in cases()]
    for ranks in (1, 2):
        program = folder / f"train-{ranks}"
        training.run([training.tool("fsdpc"), source, f"--mesh=fsdp={ranks}", "-o", program])
        log, _ = training.train(program, f"log-{ranks}", 1, init, data)
        got = json.loads(log.read_text().splitlines()[0])
        wrong = [f"{name} on {ranks} ranks: got {got[name]}, expected {expected[name]}" for name in names + ["loss"]
                 if not abs(got[name] - expected[name]) <= 2e-5 * (1 + abs(expected[name]))]
        if wrong:
            sys.exit("\n".join(wrong))
        print(f"{len(names)} kernels on {ranks} ranks agree with the interpreter")
    for words in (["--emit=scheduled"], ["--record"]):
        training.run([training.tool("fsdpc"), source, "--mesh=fsdp=2", *words, "-o",
                      folder / ("scheduled.mlir" if "--emit=scheduled" in words else "record")])
    wanted = training.run([training.tool("fsdp-translate"), "--fsdp-to-record", folder / "scheduled.mlir"]).stdout
    if training.run([folder / "record"]).stdout != wanted:
        sys.exit("the record of the program is not what its scheduled IR says")


if __name__ == "__main__":
    main(*sys.argv[1:])
