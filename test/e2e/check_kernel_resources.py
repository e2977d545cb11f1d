#!/usr/bin/env python3
"""check_kernel_resources.py SCRATCH NVCC BUILD: what every kernel takes of a multiprocessor, as ptxas says it.

The runtime's kernels: what the build left beside their objects, with the block sizes and the dynamic shared memory that
their tests ask for under the emulator. The fused kernels of four models, of seven under ./check --all: compiled here, with the block sizes in their
text. Of each: static and dynamic shared memory together, registers times threads, no spills, and a small frame: a parameter or an
array in local memory has a large one.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import training

SHARED = 227 * 1024  # bytes of a block on request (compute capability 9.0)
WITHOUT_LEAVE = 48 * 1024  # else; nvcc refuses more of static memory alone
REGISTERS = 65536  # of a block
FRAME = 48  # bytes of a thread's stack
UNIT = 8  # registers of a thread are given in such
# Kernels that may spill, and bytes of stores and loads. Those of attention on f32, and on bf16 with wide heads, as nvcc 13.0 compiles them.
SPILLS = {"fsdp::rt::keyGradients<64, 64, false, false>": 16, "fsdp::rt::attend<128, 64, true, false>": 44,
          "fsdp::rt::queryGradients<128, 64, true, false>": 56, "fsdp::rt::queryGradients<128, 32, true, false>": 32,
          "fsdp::rt::keyGradients<64, 32, true, false>": 80, "fsdp::rt::keyGradients<64, 32, true, true>": 36,
          "fsdp::rt::queryGradients<64, 64, true, true>": 56, "fsdp::rt::queryGradients<32, 64, true, true>": 56,
          "fsdp::rt::queryGradients<128, 32, true, true>": 16,
          "fsdp::rt::queryGradients<fsdp::rt::device::WithBias<fsdp::rt::Backward<fsdp::rt::device::ByGroups, 128, 4, 64, 2> > >": 20,
          "fsdp::rt::keyGradients<fsdp::rt::device::WithOptions<fsdp::rt::Backward<fsdp::rt::device::ByGroups, 128, 4, 64, 2> > >": 116}
# Bytes of a block on every device from 8.0 on: 8.6, 8.9 and 12.0 have the least. Kernels that take
# more are replaced there by variants with fewer rows.
ANYWHERE = 99 * 1024
TWINS = {f"fsdp::rt::{name}<{width}, 64{options}>": f"fsdp::rt::{name}<{width}, 32{options}>"
         for options in (", false, false", ", true, false", ", true, true")
         for name, width in (("attend", 128), ("queryGradients", 128), ("keyGradients", 128), ("keyGradients", 64))}
TWINS["fsdp::rt::biasGradients<128, 64>"] = "fsdp::rt::biasGradients<128, 32>"
# Kernels of a warpgroup are launched on 9.0 alone, elsewhere those by warps.
HOPPER_ONLY = "ByGroups"
# Kernels that no test of kernels launches: threads and dynamic bytes, as their sources have them.
UNLAUNCHED = {"fsdp::rt::countSamples": (1, 0), "fsdp::rt::device::probeWgmma": (32, 0),
              **{f"fsdp::rt::combine<{name}>": (256, 0) for name in ("double", "int", "long")}}
MODELS = {
    "mlp": ["--in=7", "--hidden=33", "--batch=50", "--mesh=fsdp=3"],
    "branches": ["--mesh=fsdp=4", "--shard=mix.scale:replicated", "--shard=shared.weight:1"],
    "gpt2": ["--layers=2", "--width=32", "--heads=2", "--context=16", "--vocab=64", "--batch=4", "--clip=1", "--mesh=fsdp=2"],
    "llama": ["--layers=1", "--width=32", "--heads=4", "--kv-heads=2", "--ffn=48", "--context=16", "--vocab=77", "--batch=5",
              "--mesh=fsdp=3"],
    "gpt2 bf16": ["--layers=1", "--width=32", "--heads=2", "--context=16", "--vocab=64", "--batch=4", "--mesh=fsdp=2",
                  "--precision=bf16"],
    # Many rows: blocks share them. Threads have 64 registers at most.
    "gpt2 wide": ["--layers=1", "--width=256", "--heads=4", "--context=256", "--vocab=512", "--batch=64", "--mesh=fsdp=2"],
    "gpt2 wide bf16": ["--layers=1", "--width=768", "--heads=12", "--context=1024", "--vocab=512", "--batch=32", "--mesh=fsdp=2",
                       "--precision=bf16"],
}
Kernel = collections.namedtuple("Kernel", "registers shared spilled frame")
ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
FRAMED = re.compile(r"(\d+) bytes stack frame")
USED = re.compile(r"Used (\d+) registers")
STATIC = re.compile(r"(\d+) bytes smem")


def readable(names):
    """Demangled names without their parameters; nvcc's and clang's names of one kernel give the same, and so do kernels of
    one name in two files, which are taken together: the most of each."""
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    cut = [line.replace("(anonymous namespace)::", "") for line in done.stdout.splitlines()]
    return [re.sub(r"^\S*void ", "", line).split("(")[0].strip() for line in cut]


def kernels_in(text):
    """{name: Kernel} of what ptxas said; the largest of its architectures."""
    found, name = {}, None
    for line in text.splitlines():
        entry = ENTRY.search(line)
        if entry:
            name = entry.group(1)
            found.setdefault(name, Kernel(0, 0, 0, 0))
        if name is None:
            continue
        kernel = found[name]
        spilled, used, static, framed = (pattern.search(line) for pattern in (SPILLED, USED, STATIC, FRAMED))
        if framed:
            kernel = kernel._replace(frame=max(kernel.frame, int(framed.group(1))))
        if spilled:
            kernel = kernel._replace(spilled=max(kernel.spilled, int(spilled.group(1)) + int(spilled.group(2))))
        if used:
            kernel = kernel._replace(registers=max(kernel.registers, int(used.group(1))))
        if static:
            kernel = kernel._replace(shared=max(kernel.shared, int(static.group(1))))
        found[name] = kernel
    together = {}
    for name, kernel in zip(readable(found), found.values()):
        together[name] = Kernel(*map(max, kernel, together.get(name, kernel)))
    return together


def check(kernels, launches):
    """What is wrong, as lines; `launches`: {name: (threads, dynamic bytes)}."""
    wrong = []
    for name, kernel in sorted(kernels.items()):
        if name not in launches:
            wrong.append(f"{name}: no launch of it is known, so that its threads and dynamic memory are not")
            continue
        threads, dynamic = launches[name]
        rounded = -(-kernel.registers // UNIT) * UNIT
        if rounded * threads > REGISTERS:
            wrong.append(f"{name}: {kernel.registers} registers of {threads} threads, expected at most {REGISTERS} of a block")
        if kernel.shared + dynamic > SHARED:
            wrong.append(f"{name}: {kernel.shared} static and {dynamic} dynamic bytes of shared memory, expected at most {SHARED}")
        small = TWINS.get(name, name)
        if small not in kernels:
            wrong.append(f"{name}: there is no {small}")
        elif HOPPER_ONLY not in name and (most := kernels[small].shared + launches.get(small, (0, 0))[1]) > ANYWHERE:
            wrong.append(f"{small}: {most} bytes of shared memory, expected at most {ANYWHERE}, which every device has")
        if kernel.shared > WITHOUT_LEAVE:
            wrong.append(f"{name}: {kernel.shared} static bytes of shared memory, expected at most {WITHOUT_LEAVE}")
        if kernel.spilled > SPILLS.get(name, 0):
            wrong.append(f"{name}: {kernel.spilled} bytes of spills, expected at most {SPILLS.get(name, 0)}")
        if kernel.frame > FRAME:
            wrong.append(f"{name}: a stack frame of {kernel.frame} bytes, expected at most {FRAME}")
    return wrong


def of_runtime(build, scratch):
    texts = [path.read_text() for path in sorted((build / "runtime/fsdp_runtime_cuda.dir").glob("*.resources"))]
    tests, log = build / "test/unit/cuda-kernel-tests", build / "test/results/cuda-launches"
    # Of the test that has run before this one, if it was that program's.
    if not log.exists() or log.stat().st_mtime < tests.stat().st_mtime:
        log = scratch / "launches"
        done = subprocess.run([tests, "--gtest_brief=1"], capture_output=True, text=True, timeout=training.HANGS,
                              env={"FSDP_EMULATOR": f"launches={log}"})
        if done.returncode:
            sys.exit(f"cuda-kernel-tests: {done.stdout}{done.stderr}")
    lines = [line.split() for line in log.read_text().splitlines()]
    launches = dict(UNLAUNCHED)
    for name, words in zip(readable([words[0] for words in lines]), lines):
        asked = (int(words[1]), int(words[2]))
        launches[name] = tuple(map(max, asked, launches.get(name, asked)))
    return kernels_in("\n".join(texts)), launches


def not_interpreted(build):
    """Kernels that the tests launch and no case of test/unit/cuda/PtxCases.txt does, as lines."""
    results, tests = build / "test/results", build / "test/unit/cuda-kernel-tests"
    logs = [results / "cuda-launches", results / "cuda-ptx-launches"]
    if not all(log.exists() and log.stat().st_mtime >= tests.stat().st_mtime for log in logs):
        print("launches of PTX: not compared, as unit/cuda-kernel-tests and unit/cuda-ptx-tests have not run")
        return []
    launched, interpreted = ({line.split()[0] for line in log.read_text().splitlines()} for log in logs)
    print(f"launches of PTX: {len(interpreted)} kernels")
    return [f"{name}: no case of test/unit/cuda/PtxCases.txt launches it; add one that does" for name in readable(sorted(launched - interpreted))]


def of_model(name, options, nvcc, scratch):
    folder = scratch / name.replace(" ", "-")
    training.run([training.tool(name.split()[0]), *options, "--target=cuda", "--emit=source", "-o", folder])
    done = training.run([*filter(None, [shutil.which("ccache")]), nvcc, "-std=c++17", "-O3", "--fmad=false",
                         "--expt-relaxed-constexpr", "--resource-usage", "-gencode=arch=compute_90a,code=sm_90a", "-I", folder,
                         "-c", folder / "kernels.cu", "-o", folder / "kernels.o"])
    text = (folder / "kernels.cu").read_text()
    launches = {kernel: (int(threads), int(shared)) for kernel, threads, shared in
                re.findall(r"launchKernel\(\s*(\w+),\s*/\*grid=\*/[^/]*/\*block=\*/(\d+),\s*/\*sharedBytes=\*/(\d+)", text)}
    kernels = kernels_in(done.stdout + done.stderr)
    # Kernels of runtime/kernels/cuda/FusedKernel.h are launched there, with at most 256 threads.
    for kernel in kernels:
        if kernel.startswith("fsdp::rt::device::"):
            launches[kernel] = (256, 0)
    return kernels, {kernel: launches.get(kernel.split("::")[-1], launches.get(kernel)) for kernel in kernels
                     if kernel.split("::")[-1] in launches or kernel in launches}


def main(scratch, nvcc, build):
    scratch, wrong = pathlib.Path(scratch), []
    os.environ.update(CCACHE_BASEDIR=str(training.HERE.parents[1]), CCACHE_NOHASHDIR="1")
    scratch.mkdir(parents=True, exist_ok=True)
    # A kernel that exceeds every limit is found; otherwise the other checks prove nothing.
    if (len(check({"k": Kernel(200, WITHOUT_LEAVE + 1, UNIT, FRAME + 8)}, {"k": (512, 200000)})) != 6
            or len(check({"k": Kernel(1, 0, 0, 0)}, {})) != 1):
        sys.exit("the limits are not checked")
    cases = {"runtime": of_runtime(pathlib.Path(build), scratch)}
    models = training.chosen(MODELS, "llama", "gpt2 wide bf16")
    cases.update({name: of_model(name, options, nvcc, scratch) for name, options in models.items()})
    wrong += not_interpreted(pathlib.Path(build))
    for name, (kernels, launches) in cases.items():
        if not kernels:
            sys.exit(f"{name}: no kernels were found")
        wrong += [f"{name}: {line}" for line in check(kernels, launches)]
        most = max(kernels, key=lambda kernel: kernels[kernel].shared + launches.get(kernel, (0, 0))[1])
        print(f"{name}: {len(kernels)} kernels, at most {max(k.registers for k in kernels.values())} registers, "
              f"{kernels[most].shared} + {launches.get(most, (0, 0))[1]} bytes of shared memory in {most}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
