#!/usr/bin/env python3
"""check_cuda_estimate.py SCRATCH BUILD: the output of bench/cuda-estimate for a small gpt2 on one rank and on two.

Launches, flops and bytes are those that the compiler's report and timeline have, each launch is found in the recorded calls, blocks are
those that the kernels' sources ask for, calls those of a step that is traced under the emulator, and the two predictions differ as their rates do.
Machine code is counted in a listing that is written here, as no disassembler may be at hand: a loop in vectors beside one of
single elements, a loop with products, and the padding at the end.
"""

import json
import pathlib
import re
import runpy
import subprocess
import sys
import types

import training

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/estimate"))
import account  # noqa: E402
import recording  # noqa: E402
import sass  # noqa: E402

LAYERS, ROWS, WIDTH = 2, 4 * 64, 128
MODEL = f"gpt2 --layers={LAYERS} --width={WIDTH} --heads=2 --context=64 --vocab=512 --batch=4 --precision=bf16"
# A kernel: 2 elements of 16 bits in one loop, 16 bytes in and out in the other, then a loop with a product of four warps.
LISTING = """
\t\tFunction : _Z6kernelv
        /*0000*/                   LDG.E.U16 R0, desc[UR4][R2.64] ;
        /*0010*/                   STG.E.U16 desc[UR4][R4.64], R0 ;
        /*0020*/               @P0 BRA 0x0 ;
        /*0030*/                   LDG.E.128 R0, desc[UR4][R2.64] ;
        /*0040*/                   FADD R0, R0, 1 ;
        /*0050*/                   MUFU.EX2 R1, R1 ;
        /*0060*/                   STG.E.128 desc[UR4][R4.64], R0 ;
        /*0070*/               @P0 BRA 0x30 ;
"""
PRODUCT = """        /*0080*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24 ;
        /*0090*/                   IADD3 R1, R1, 1, RZ ;
        /*00a0*/              @!P1 BRA 0x80 ;
"""
END = """        /*00b0*/                   EXIT ;
        /*00c0*/                   BRA 0xc0;
        /*00d0*/                   NOP;
"""


def expect(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got}, expected {expected}")


def check_instructions():
    table = sass.throughput()
    code = sass.parse(LISTING + END)["_Z6kernelv"]
    expect("instructions before the end", len(code), 9)
    body = sass.main_body(code, table)
    expect("the loop in vectors", (body.instructions, body.bytes, body.flops, body.loop), (5, 32, 0, True))
    expect("its classes", dict(body.classes), {"memory": 2, "fma": 1, "special": 1})
    expect("its clocks", sass.clocks(body, table), {"memory": 2.0, "fma": 0.25, "special": 2.0, "issue": 1.25})
    body = sass.main_body(sass.parse(LISTING + PRODUCT + END)["_Z6kernelv"], table)
    expect("the loop with a product", (body.instructions, body.flops), (3, 2 * 64 * 64 * 16 / 4))
    expect("its clocks", sass.clocks(body, table), {"alu": 0.5, "issue": 0.75, "tensor": 8.0})
    bound, seconds = sass.seconds(body, table, 132 * 1000)
    expect("what bounds it", (bound, round(seconds * table["clock"])), ("tensor", 8000))
    everywhere = [prefix for entry in table["classes"] for prefix in entry["prefixes"]]
    expect("prefixes of two classes", len(everywhere) - len(set(everywhere)), 0)


def rows_of(text):
    """{(stream, work): (launches, kernels, calls, blocks, ms, table ms)} of the first table, and its sums."""
    rows, sums = {}, None
    for line in text.split("\n\n")[2].splitlines()[1:]:
        stream, work = line[:8].strip(), line[9:53].strip()
        columns = [line[53:62], line[62:70], line[70:77], line[95:109], line[109:119], line[119:129]]
        if stream == "all":
            sums = [int(column) for column in columns[:3]]
        else:
            rows[stream, work] = [column.strip() for column in columns]
    return rows, sums


def check(mesh, scratch, build):
    words = [*MODEL.split(), f"--mesh={mesh}"]
    # The folder has no kernels of the runtime.
    without = f"--objects={scratch}" if mesh == "fsdp=1" else "--skip=instructions"
    text = training.run([ROOT / "bench/cuda-estimate", f"--build={build}", "--machine=h200x8", "--top=3", without, *words]).stdout
    expect(f"{mesh}: instructions are missed", "\ninstructions are not counted: expected " in text, mesh == "fsdp=1")
    expect("the first line", text.splitlines()[0], f"Estimate; not run on a GPU: {' '.join(words)} --target=cuda")
    rows, sums = rows_of(text)
    place = scratch / mesh.replace("=", "-")
    place.mkdir(parents=True)
    training.run([training.tool(words[0]), *words[1:], "--target=cuda", "--machine=h200x8", f"--report={place}/report.json",
                  f"--timeline={place}/timeline.json", "--emit=source", "-o", place / "sources"])
    timeline, step = account.read_timeline(place / "timeline.json")
    expect(f"{mesh}: launches", sums[0], len(timeline))
    if f"h200x8: {step:.1f} ms a step" not in text:
        sys.exit(f"{mesh}: got\n{text}, expected the step of {step:.1f} ms of the timeline")
    products = sum(1 for event in timeline.values() if event["args"]["flops"] and not event["cat"].startswith("attention"))
    with_epilogue = rows["compute", "product with its epilogue"]
    got = sum(int(row[0]) for row in (rows["compute", "product"], rows["compute", "product, then a loop"], with_epilogue))
    expect(f"{mesh}: products", got, products)
    # Of each layer the bias of one product, the residuals of two, GELU, and the gradient of a bias with its weight's are cuBLASLt's, in one
    # kernel; of the last layer another such gradient, unless one of another unit is reduced in between.
    ranks = int(mesh.partition("=")[2])
    expect(f"{mesh}: launches and kernels of products with their epilogues", with_epilogue[:2], [str(5 * LAYERS + (ranks == 1))] * 2)
    # A row of each norm is a block; gradients of norms have as many stripes as rows, up to eight on each of 132 multiprocessors.
    expect(f"{mesh}: norms", rows["compute", "layer_norm"][:4:3], [str(2 * LAYERS + 1), str(ROWS // ranks)])
    expect(f"{mesh}: gradients of norms", rows["compute", "layer_norm_grad"][:4:3], [str(2 * LAYERS + 1), str(ROWS // ranks)])
    expect(f"{mesh}: kernels of a gradient of a norm", int(rows["compute", "layer_norm_grad"][1]), 2 * (2 * LAYERS + 1))
    # The sums of the biases' gradients are two kernels where there are many rows for a block; those of two ranks are not.
    expect(f"{mesh}: kernels of products and sums over their rows", rows["compute", "product, then a loop"][1], str(LAYERS * (3 if ranks == 1 else 2)))
    # Other rows of gradients are added up by the gradients of norms on one rank, and by loops where ranks reduce them.
    expect(f"{mesh}: sums over rows in two kernels", ("compute", "sum over rows") in rows, False)
    expect(f"{mesh}: squares, updates", [rows["compute", work][0] for work in ("square_sum", "optimizer_step")], ["1" if ranks == 1 else "2", "1"])
    idle = [what for what, row in rows.items() if not row[2]]
    expect(f"{mesh}: launches without a call", idle, [])
    expect(f"{mesh}: the sum of the calls", sums[2], sum(int(row[2] or 0) for row in rows.values()))
    if not all(float(row[4]) > 0 for row in rows.values()):
        sys.exit(f"{mesh}: got\n{text}, expected a time of each row")
    return place, text


def check_mismatch(place, build):
    """Calls that are not those of the trace are refused."""
    program = recording.compile_emulated(place / "sources", build)
    calls, trace = recording.run(program, 3 * 4 * 65, 1)
    events = json.loads(trace.read_text())
    last = max(number for number, event in enumerate(events["traceEvents"]) if event["ph"] == "X" and event["cat"] == "layer_norm_grad")
    del events["traceEvents"][last]
    trace.write_text(json.dumps(events))
    try:
        recording.match(calls, trace)
    except ValueError as error:
        if not re.match(r"launches on the streams of each thread: got \[\[", str(error)):
            sys.exit(f"got '{error}', expected the launches of each stream")
    else:
        sys.exit("a trace that lacks a launch was taken")


def check_cudnn(scratch, build):
    """With --attention=cudnn the rates of attention are replaced, and its kernels are not counted."""
    estimate = types.SimpleNamespace(**runpy.run_path(str(ROOT / "bench/cuda-estimate")))
    of = {name: {(entry["kind"], entry["type"]): entry["rates"] for entry in json.loads(path.read_text(encoding="utf-8"))["products"]}
          for name, path in (("machine", ROOT / "passes/cost/machines/h200x8.json"), ("cudnn", estimate.CUDNN), ("both", estimate.with_cudnn("h200x8", scratch)))}
    expect("rates with cuDNN", of["both"], {**of["machine"], **of["cudnn"]})
    words = [*MODEL.split(), "--mesh=fsdp=1"]
    text = training.run([ROOT / "bench/cuda-estimate", f"--build={build}", "--machine=h200x8", "--skip=instructions", "--attention=cudnn", *words]).stdout
    expect("its first line", text.splitlines()[0], f"Estimate; not run on a GPU: {' '.join(words)} --target=cuda, attention by cuDNN")
    rows, _ = rows_of(text)
    for work in ("attention", "attention_grad"):
        expect(f"launches, kernels and calls of {work}", rows["compute", work][:3], [str(LAYERS), "", ""])


def refused(build, *words):
    done = subprocess.run([ROOT / "bench/cuda-estimate", f"--build={build}", *words], capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()[-1]


def main(scratch, build):
    build = pathlib.Path(build)
    check_instructions()
    place, text = check("fsdp=1", pathlib.Path(scratch), build)
    check("fsdp=2", pathlib.Path(scratch), build)
    check_mismatch(place, build)
    check_cudnn(pathlib.Path(scratch), build)
    expect("a part that is not known", refused(build, "gpt2-124m", "--skip=sums"),
           (2, "cuda-estimate: error: got --skip=sums, expected calls or instructions"))
    expect("a machine without a table", refused(build, "gpt2-124m", "--machine=a100x8"),
           (2, "cuda-estimate: error: got --machine=a100x8, which has no table of its own: expected --table=FILE too"))
    print(text, end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
