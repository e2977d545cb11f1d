#!/usr/bin/env python3
"""check_names.py SCRATCH: a model may call its things what it likes.

A model in which input, parameter, unit, metric and operations of a term all have one name, and names that differ by what no
C++ identifier can hold, or that mean something to C++, to a shell or to printf. The programs compile for both targets, write down
what the IR says, train to the bits of the model with plain names, and log and export under the names as they are, in the order of
the model on every mesh.
"""

import json
import os
import pathlib
import random
import sys

import training
import weights as safetensors
from check_refusals import write

CLASHING = [
    "block1.1", "block11", "block1_1", "block.11", "a", "A", "é", "ü", "ß", "{}", "()", "[]", "x y", "x.y", "x  y", "xY",
    'a "quoted" name, with commas, (brackets) and {braces}, long enough that no line of a program has room for all of it',
    "back\\slash", "ends in \\", "*/", "/*", "//", "??/", "??/\"", "%s%n%d", "$(exit 3)", "`x`", "'", "a,b", "#define a",
    "float", "int", "main", "std", "ArenaSpan", "EOF", "NULL", "M_PI", "INT_MAX", "CHECK", "__x", "_X", "1", "1st", "11st", "input",
    "output", "kInput", "compute", "a.flat", "a.1", "a_members", "a.kernel", "name\u2028line", "名前", "ᚠ", "n" * 1024,
]
# The reserved keys of a log.
RESERVED = {"step", "loss", "grad_norm", "lr", "tokens_per_s", "step_ms", "peak_bytes", "workspace", "library_bytes", "run",
            "restart", "rollback", "seconds", "tokens", "epoch", "tflops", "mfu",
            "samples_digest"}
SAMPLES = 8


def quoted(name):
    """`name` as a string of MLIR's."""
    plain = set(range(0x20, 0x7F)) - {ord('"'), ord("\\")}
    return '"' + "".join(chr(b) if b in plain else f"\\{b:02X}" for b in name.encode()) + '"'


def width(i):
    return 3 + i % 4


def model(names):
    """The text of a model with a term for each name."""
    declared, body, total = [], [], None
    for i, name in enumerate(names):
        row, name = width(i), quoted(name)
        batch, one = f"tensor<4x{row}xf32>", f"tensor<{row}xf32>"
        declared.append(f"fsdp.param @{name} : {one} unit {name} init <normal, 0.5>")
        body += [f"%x{i} = fsdp.input {name} sample_dim 0 : {batch} loc({name})",
                 f"%w{i} = fsdp.read @{name} : {one} loc({name})",
                 f'%b{i} = nn.repeat "d -> b d" %w{i} : {one} -> {batch} loc({name})',
                 f"%p{i} = arith.mulf %x{i}, %b{i} : {batch} loc({name})",
                 f"%t{i} = math.tanh %p{i} : {batch} loc({name})",
                 f'%s{i} = nn.reduce sum "b d ->" %t{i} : {batch} -> tensor<f64> loc({name})']
        body.append(f"fsdp.metric {name} %s{i} over %count")
        if total:
            body.append(f"%sum{i} = arith.addf {total}, %s{i} : tensor<f64>")
        total = f"%sum{i}" if total else f"%s{i}"
    return "\n".join(declared + ["fsdp.step @train train optimizer <sgd, lr = 0.1> {",
                                 "%count = arith.constant dense<4.0> : tensor<f64>"] + body +
                     [f"fsdp.loss {total} over %count", "}", ""])


def recorded(folder, path, *options):
    """The program's own account of its actions is that of its IR."""
    scheduled, program = folder / "scheduled.mlir", folder / "record"
    training.run([training.tool("fsdpc"), path, *options, "--emit=scheduled", "-o", scheduled])
    # With the compiler of the build, which has precompiled headers for records.
    training.run(["env", "-u", "CXX", "-u", "CCACHE_COMPILERCHECK", "-u", "CCACHE_DEPEND", training.tool("fsdpc"), path, *options, "--record",
                  "-o", program])
    expected = training.run([training.tool("fsdp-translate"), "--fsdp-to-record", scheduled]).stdout
    if training.run([program]).stdout != expected:
        sys.exit(f"{program}: its record is not that of {scheduled}")


def header(path):
    content = path.read_bytes()
    return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])


def check_clashing(folder):
    plain = [f"term{i}" for i in range(len(CLASHING))]
    numbers = random.Random(7)
    samples = [[numbers.gauss(0, 1) for _ in range(SAMPLES * width(i))] for i in range(len(plain))]
    weights = [[numbers.gauss(0, 1) for _ in range(width(i))] for i in range(len(plain))]
    logs, exports = {}, {}
    for title, names in ("plain", plain), ("clashing", CLASHING):
        here = folder / title
        here.mkdir(parents=True)
        path = here / "model.mlir"
        path.write_text(model(names), encoding="utf-8")
        data = write(here / "data.safetensors", {n: ("F32", [SAMPLES, width(i)], samples[i]) for i, n in enumerate(names)})
        init = write(here / "init.safetensors", {n: ("F32", [width(i)], weights[i]) for i, n in enumerate(names)})
        for mesh, options in ("fsdp=2", []), ("data=2", ["--strategy=ddp"]):
            program = here / f"train-{mesh}"
            training.run([training.tool("fsdpc"), path, f"--mesh={mesh}", *options, "-o", program])
            log, written = training.train(program, mesh, 3, init, data)
            lines = [json.loads(line) for line in log.read_text(encoding="utf-8").rstrip("\n").split("\n")]
            keys = list(lines[0])
            logs[title, mesh] = [[line["loss"]] + [line[n] for n in names] for line in lines]
            if sorted(set(keys) - RESERVED) != sorted(names):
                sys.exit(f"{log}: its keys are {keys}, expected those of a log and the model's metrics")
            order = [n for n in header(written) if n != "__metadata__"]
            if order != names:
                sys.exit(f"{written}: its tensors are {order}, expected the order of the model")
            exports[title, mesh] = [safetensors.read(written)[n][2] for n in names]
        if header(here / "fsdp=2.safetensors") != header(here / "data=2.safetensors"):
            sys.exit(f"{here}: the headers of exports from two meshes differ")
        if names is CLASHING:
            recorded(here, path, "--mesh=fsdp=2")
            recorded(here, path, "--mesh=fsdp=2", "--target=cuda")
    for mesh in "fsdp=2", "data=2":
        if logs["plain", mesh] != logs["clashing", mesh] or exports["plain", mesh] != exports["clashing", mesh]:
            sys.exit(f"mesh {mesh}: the model computes something else under other names")
    print(f"{len(CLASHING)} names")


if __name__ == "__main__":
    os.environ.update(training.unoptimized())
    check_clashing(pathlib.Path(sys.argv[1]))
