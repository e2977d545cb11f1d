#!/usr/bin/env python3
"""check_kernel_instructions.py SCRATCH NVCC BUILD: what the machine code (SASS) of kernels has to have, as cuobjdump prints it.

- Kernels of attention in bf16: as many products (HMMA, of warpgroups HGMMA), loads of matrices from shared memory (LDSM) and copies in the background
  (LDGSTS) as their tiles need, with every loop over a tile unrolled: a product or a copy that is not there or is there twice is found.
- Under ./check --all, of the two models of bench/cuda-estimate at their real sizes: no kernel that they launch moves single elements of 16 bits of global
  memory in a loop, and a launch that moves more than a million elements has at least 132 blocks. NARROW and FEW list what does, with the reason;
  a row that nothing needs is an error.

Without a disassembler the kernels are counted that nothing looks at. Results of the same machine code are kept in the build folder.
"""

import collections
import hashlib
import importlib.machinery
import importlib.util
import math
import os
import pathlib
import re
import subprocess
import sys
import types

import training

ROOT = training.HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench/estimate"))
import account  # noqa: E402
import sass  # noqa: E402

MULTIPROCESSORS = 132  # of an H100 or H200: a launch with fewer blocks leaves some idle
ELEMENTS = 1_000_000
NARROW_BYTES = 2
MODELS = ("gpt2-124m", "llama-8b")
WITHOUT = "expected cuobjdump in PATH (PyPI's nvidia-cuda-cuobjdump has one)"
# Kernels of the models with loops of single elements beside those of 8 bytes and more: patterns of their names, and the reason.
NARROW = {
    r"fsdp::rt::(attend|queryGradients|keyGradients)<.*>": "the branch for rows that are not aligned, which these models do not take",
    r"fsdp::rt::(crossEntropyRows|crossEntropyGradRows|partialRows)<.*>": "up to seven elements before and behind the aligned part of a row",
}
# Kinds of launches of the models with few blocks, and the reason.
FEW = {}
PRODUCTS, GROUP_PRODUCTS, MATRICES, COPIES = COUNTED = ("HMMA.16816.F32.BF16", "HGMMA.64x", "LDSM.16", "LDGSTS.E")
BLOCKS = re.compile(r"fsdp::rt::(\w+)<.*?(Forward|Backward)<fsdp::rt::device::By(Warps|Groups), ([\d, ]+)>"
                    r"|fsdp::rt::(biasGradients)<fsdp::rt::NarrowBlocks<(\d+)>")
# A kernel of two loops, of 2 bytes and of 16 bytes at a time.
LISTING = """
\t\tFunction : k
        /*0000*/                   LDG.E.U16 R0, desc[UR4][R2.64] ;
        /*0010*/               @P0 BRA 0x0 ;
        /*0020*/                   LDG.E.128 R0, desc[UR4][R2.64] ;
        /*0030*/               @P0 BRA 0x20 ;
        /*0040*/                   STG.E.U16 desc[UR4][R4.64], R0 ;
        /*0050*/                   EXIT ;
"""


def expected_of_attention(name):
    """{prefix of an instruction: number} that the tiles of an attention kernel by tensor cores need; None for other kernels.

    A product of 16 x 8 x 16 is one HMMA, 64 rows at once one HGMMA for 16 of the dimension that is summed over; an LDSM loads 16 x 16 numbers, and a
    thread copies 8 numbers at a time. Scores that a mask may hide and others have a loop each."""
    if not (found := BLOCKS.match(name)):
        return None
    kernel = found.group(1) or found.group(5)
    is_by_groups, sizes = found.group(3) == "Groups", [int(size) for size in (found.group(4) or found.group(6)).split(",")]
    if kernel == "biasGradients":
        width, warps, walked = sizes[0], 4, 64
    elif kernel == "attend":
        width, tiles, warps, walked = sizes[:4]
    else:
        width, warps, walked = sizes[:3]

    def copies(rows):
        return math.ceil(rows * width / 8 / (32 * warps))

    tile, chunks, steps, owned = walked * width, width // 16, walked // 16, 16 * warps
    products, group_products, matrices, moved = {
        "attend": lambda: (2 * tiles * tile // 64, 2 * (chunks + steps), 2 * 2 * tile // 256 + 2 * tiles * chunks,
                           copies(tiles * owned) + 6 * copies(walked)),
        "keyGradients": lambda: (4 * tile // 128, 2 * (chunks + steps), 4 * tile // 256 + 2 * chunks, 2 * copies(owned) + 4 * copies(walked) + 2),
        "queryGradients": lambda: (3 * tile // 128, 2 * chunks + steps, 3 * tile // 256 + 2 * chunks, 2 * copies(owned) + 4 * copies(walked)),
        "biasGradients": lambda: (2 * tile // 128, 0, 2 * tile // 256 + 2 * chunks, 4 * copies(walked)),
    }[kernel]()
    if is_by_groups:
        return {PRODUCTS: 0, GROUP_PRODUCTS: group_products, MATRICES: 0, COPIES: moved}
    return {PRODUCTS: products, GROUP_PRODUCTS: 0, MATRICES: matrices, COPIES: moved}


def counts(code):
    names = [sass.mnemonic(text) for _, text in code]
    return {prefix: sum(name.startswith(prefix) for name in names) for prefix in COUNTED}


def wrong_with_attention(name, code, expected):
    got = counts(code)
    return [f"{name}: got {got[prefix]} {prefix}, expected {expected[prefix]}" for prefix in COUNTED if got[prefix] != expected[prefix]]


def moves_in_loops(code):
    """{bytes: how many accesses of global memory in loops}."""
    loops = sass.loops_of(code)
    sizes = [sass.bytes_of(sass.mnemonic(text)) for address, text in code if any(first <= address <= last for first, last in loops)]
    return collections.Counter(size for size in sizes if size)


def wrong_with_loops(kernels, listed):
    """Lines, and the patterns that were needed; kernels: {name: code}."""
    wrong, needed = [], set()
    for name, code in sorted(kernels.items()):
        moves = moves_in_loops(code)
        pattern = next((pattern for pattern in listed if re.fullmatch(pattern, name)), None)
        wide = sum(count for size, count in moves.items() if size >= 8)
        if moves[NARROW_BYTES] and (pattern is None or not wide):
            wrong.append(f"{name}: got {moves[NARROW_BYTES]} accesses of 16 bits and {wide} of 8 bytes and more in loops, expected wide ones alone")
        elif moves[NARROW_BYTES]:
            needed.add(pattern)
    return wrong, needed


def wrong_with_blocks(launches, listed):
    """The same of [(kind, name, bytes, blocks)]."""
    wrong, needed = [], set()
    for kind, name, moved, blocks in launches:
        if moved <= ELEMENTS * NARROW_BYTES or blocks >= MULTIPROCESSORS:
            continue
        needed.add(kind)
        if kind not in listed:
            wrong.append(f"{name} ({kind}): got {blocks} blocks for {moved} bytes, expected at least {MULTIPROCESSORS}")
    return wrong, needed & set(listed)


def unused(listed, needed, what):
    return [f"{what}: nothing needs {row}; remove it" for row in listed if row not in needed]


def check_planted():
    """Faults of each kind are found, and what is right is not one."""
    forward = "fsdp::rt::attend<fsdp::rt::Forward<fsdp::rt::device::ByWarps, 64, 1, 4, 64, 1> >"
    expected = expected_of_attention(forward)
    instructions = [prefix for prefix, count in expected.items() for _ in range(count)]
    code = [(16 * number, f"{text} R0, R1") for number, text in enumerate(instructions)]
    kernel = sass.parse(LISTING)["k"]
    straight = [(address, text) for address, text in kernel if address >= 0x20]
    few = [("sum", "bias", 3_000_000, 131)]
    planted = [
        (wrong_with_attention(forward, code, expected), 0), (wrong_with_attention(forward, code[1:], expected), 1),
        (wrong_with_attention(forward, code[:-1], expected), 1), (wrong_with_attention(forward, code + [(9999, "LDSM.16.M88.4 R0, [R1]")], expected), 1),
        (wrong_with_loops({"k": kernel}, {})[0], 1), (wrong_with_loops({"k": kernel}, {"k": ""})[0], 0), (wrong_with_loops({"k": straight}, {})[0], 0),
        (wrong_with_loops({"k": kernel[:2]}, {"k": ""})[0], 1), (wrong_with_blocks(few, {})[0], 1), (wrong_with_blocks(few, {"sum": ""})[0], 0),
        (wrong_with_blocks([("sum", "bias", 3_000_000, 132), ("sum", "bias", 2_000_000, 1)], {})[0], 0),
        (unused({"k": ""}, wrong_with_loops({"k": straight}, {"k": ""})[1], "NARROW"), 1),
        (unused({"sum": ""}, wrong_with_blocks(few, {"sum": ""})[1], "FEW"), 0),
    ]
    for number, (wrong, lines) in enumerate(planted):
        if len(wrong) != lines:
            sys.exit(f"planted {number}: got {wrong}, expected {lines} lines")
    print(f"planted: {sum(lines for _, lines in planted)} faults found")


def code_of(objects):
    """{readable name: code} of all kernels of some objects."""
    found = {}
    for path in objects:
        kernels = sass.listing(path)
        found.update((name, kernels[mangled]) for mangled, name in account.readable(list(kernels)).items())
    return found


def check_attention(objects):
    """Lines to print, and what is wrong."""
    if not sass.disassembler():
        names = {name for path in objects for name in re.findall(r"entry function '(\S+)'", pathlib.Path(f"{path}.resources").read_text())}
        kernels = [name for name in account.readable(sorted(names)).values() if expected_of_attention(name)]
        return [f"attention: {len(kernels)} kernels, not looked at: {WITHOUT}"], []
    lines, wrong = [], []
    for name, code in sorted(code_of(objects).items()):
        if expected := expected_of_attention(name):
            wrong += wrong_with_attention(name, code, expected)
            lines.append("  " + ", ".join(f"{count} {prefix.split('.')[0]}" for prefix, count in counts(code).items() if count) + f" in {name}")
    if not lines:
        sys.exit(f"got no kernels of attention in {', '.join(path.name for path in objects)}, expected some")
    return [f"attention: {len(lines)} kernels multiply, load and copy as often as their tiles need", *lines], wrong


def estimate():
    """bench/cuda-estimate, whose name has no ending."""
    loader = importlib.machinery.SourceFileLoader("cuda_estimate", str(ROOT / "bench/cuda-estimate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def launched_by(model, build, place):
    """(names of kernels, [(kind, launch, bytes, blocks of the kernel that has most)]) of a step of one rank."""
    cuda_estimate = estimate()
    machine, command = cuda_estimate.CASES[model]
    options = types.SimpleNamespace(build=build, command=command.split())
    report, timeline = cuda_estimate.predict(options, machine, place)
    calls, _ = cuda_estimate.count_calls(options, place, report["ranks"])
    names, launches = set(), []
    for (stream, launch, kind), actions in calls.items():
        kernels = [kernel for action in actions for kernel in action.kernels]
        names.update(kernel.name for kernel in kernels)
        if kernels and (stream, launch) in timeline:
            launches.append((kind, launch, timeline[stream, launch]["args"]["bytes"], max(kernel.blocks for kernel in kernels)))
    return set(account.readable(sorted(names)).values()), launches


def check_models(objects, nvcc, build, scratch):
    """Lines to print, and what is wrong."""
    lines, wrong, narrow, few = [], [], set(), set()
    runtime = code_of(objects) if sass.disassembler() else None
    for model in MODELS:
        place = scratch / model
        place.mkdir(parents=True)
        names, launches = launched_by(model, build, place)
        found, needed = wrong_with_blocks(launches, FEW)
        wrong += [f"{model}: {line}" for line in found]
        few |= needed
        large = [blocks for _, _, moved, blocks in launches if moved > ELEMENTS * NARROW_BYTES]
        lines.append(f"{model}: {len(large)} launches of more than a million elements have at least {min(large)} blocks")
        if runtime is None:
            lines.append(f"{model}: {len(names)} kernels, not looked at: {WITHOUT}")
            continue
        own = place / "kernels.o"
        subprocess.run([nvcc, *estimate().NVCC, "-I", place / "sources", "-c", place / "sources/kernels.cu", "-o", own], check=True)
        code = {**runtime, **code_of([own])}
        if missing := names - set(code):
            sys.exit(f"{model}: got no machine code of {', '.join(sorted(missing))}")
        found, needed = wrong_with_loops({name: code[name] for name in names}, NARROW)
        wrong += [f"{model}: {line}" for line in found]
        narrow |= needed
        lines.append(f"{model}: {len(names)} kernels move no single elements in loops but those listed")
    if runtime is not None:
        wrong += unused(NARROW, narrow, "NARROW")
    return lines, wrong + unused(FEW, few, "FEW")


def kept_at(build, objects):
    """The file that has the lines for attention once it was right with this machine code."""
    digest = hashlib.sha256(str(sass.disassembler()).encode())
    for path in [pathlib.Path(__file__), pathlib.Path(sass.__file__), pathlib.Path(account.__file__), *objects]:
        digest.update(path.read_bytes())
    return build / "test/cached" / f"e2e-kernel-instructions-{digest.hexdigest()}"


def main(scratch, nvcc, build):
    build = pathlib.Path(build)
    objects = sorted((build / "runtime/fsdp_runtime_cuda.dir").glob("*.o"))
    attention = [path for path in objects if path.name.startswith("Attention")]
    if not attention:
        sys.exit(f"got no objects of attention in {build}/runtime/fsdp_runtime_cuda.dir, expected those of a build with nvcc")
    check_planted()
    kept = kept_at(build, attention)
    if kept.exists() and not (training.WHOLE or "FSDP_TEST_FRESH" in os.environ):
        lines, wrong = kept.read_text().splitlines(), []
    else:
        lines, wrong = check_attention(attention)
        if not wrong:
            kept.parent.mkdir(exist_ok=True)
            kept.write_text("\n".join(lines) + "\n")
    if training.WHOLE:
        further, faults = check_models(objects, nvcc, build, pathlib.Path(scratch))
        lines, wrong = lines + further, wrong + faults
    print("\n".join(lines))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
