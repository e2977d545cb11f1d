#!/usr/bin/env python3
"""check_kernel_resources.py SCRATCH NVCC BUILD: what every kernel takes of a multiprocessor, as ptxas says it.

The runtime's kernels: what the build left beside their objects, for the architectures that it compiles for, with the block sizes and the dynamic shared
memory that their tests ask for under the emulator. The fused kernels of two models, of seven and for more architectures under ./check --all: compiled
here, with the block sizes in their text. Of each, on each architecture: static and dynamic shared memory together, registers times threads, no spills and
no local memory but what SPILLS and FRAMES list. A row of these that no kernel needs is an error. Prints a line for each architecture.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

import training

# Bytes of shared memory of a block on request, by compute capability (CUDA programming guide, technical specifications).
SHARED = {**dict.fromkeys(("80", "87"), 163 * 1024), **dict.fromkeys(("86", "89", "120", "121"), 99 * 1024),
          **dict.fromkeys(("90", "100", "103", "110"), 227 * 1024)}
WITHOUT_LEAVE = 48 * 1024  # else; nvcc refuses more of static memory alone
REGISTERS = 65536  # of a block
UNIT = 8  # registers of a thread are given in such
# Kernels that may spill, and bytes of stores and loads. Those of attention on f32, and on bf16 with wide heads, as nvcc 13.0 compiles them.
SPILLS = {"fsdp::rt::keyGradients<64, 64, false, false>": 16, "fsdp::rt::attend<128, 64, true, false>": 44,
          "fsdp::rt::queryGradients<128, 64, true, false>": 56, "fsdp::rt::queryGradients<128, 32, true, false>": 32,
          "fsdp::rt::keyGradients<64, 32, true, false>": 80, "fsdp::rt::keyGradients<64, 32, true, true>": 36,
          "fsdp::rt::queryGradients<64, 64, true, true>": 56, "fsdp::rt::queryGradients<32, 64, true, true>": 56,
          "fsdp::rt::queryGradients<128, 32, true, true>": 16,
          "fsdp::rt::queryGradients<fsdp::rt::device::WithBias<fsdp::rt::Backward<fsdp::rt::device::ByGroups, 128, 4, 64, 2> > >": 20,
          "fsdp::rt::keyGradients<fsdp::rt::device::WithOptions<fsdp::rt::Backward<fsdp::rt::device::ByGroups, 128, 4, 64, 2> > >": 116}
# Kernels with local memory beside what they spill, and its bytes of a thread.
FRAMES = {
    # 16 bytes of a row that is not aligned are stored one element after the other.
    r"fsdp::rt::(attend|queryGradients|keyGradients)<.*fsdp::rt::device::By(Warps|Groups).*>": 16,
    # What sine and cosine multiply a large angle with, of f32 and f64.
    r"fsdp::rt::(turn|turnAt)<.*>": 32,
    r"fsdp::rt::setRate": 40,
}
# Kernels that take more than every device from 8.0 on has are replaced, where they do, by variants with fewer rows.
ANYWHERE = min(SHARED.values())
TWINS = {f"fsdp::rt::{name}<{width}, 64{options}>": f"fsdp::rt::{name}<{width}, 32{options}>"
         for options in (", false, false", ", true, false", ", true, true")
         for name, width in (("attend", 128), ("queryGradients", 128), ("keyGradients", 128), ("keyGradients", 64))}
TWINS["fsdp::rt::biasGradients<128, 64>"] = "fsdp::rt::biasGradients<128, 32>"
# Kernels of a warpgroup are launched on 9.0 alone, elsewhere those by warps.
HOPPER_ONLY = "ByGroups"
# Kernels that no test of kernels launches: threads and dynamic bytes, as their sources have them.
UNLAUNCHED = {"fsdp::rt::countSamples": (1, 0), "fsdp::rt::device::probeWgmma": (32, 0),
              **{f"fsdp::rt::combine<{name}>": (256, 0) for name in ("double", "int", "long")}}
# Those of the runtime's build (runtime/program/CudaArchitectures.def), and for which the fused kernels are compiled too under --all.
ARCHITECTURES = re.findall(r'^FSDP_CUDA_ARCHITECTURE\("(\w+)"\)', (training.HERE.parents[1] / "runtime/program/CudaArchitectures.def").read_text(), re.M)
FURTHER = ["80", "86", "100", "120"]
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
    """{architecture: {name: Kernel}} of what ptxas said."""
    found, of = collections.defaultdict(dict), None
    for line in text.splitlines():
        entry = ENTRY.search(line)
        if entry:
            of = found[entry.group(2)], entry.group(1)
            of[0].setdefault(of[1], Kernel(0, 0, 0, 0))
        if of is None:
            continue
        kernels, name = of
        kernel = kernels[name]
        spilled, used, static, framed = (pattern.search(line) for pattern in (SPILLED, USED, STATIC, FRAMED))
        if framed:
            kernel = kernel._replace(frame=max(kernel.frame, int(framed.group(1))))
        if spilled:
            kernel = kernel._replace(spilled=max(kernel.spilled, int(spilled.group(1)) + int(spilled.group(2))))
        if used:
            kernel = kernel._replace(registers=max(kernel.registers, int(used.group(1))))
        if static:
            kernel = kernel._replace(shared=max(kernel.shared, int(static.group(1))))
        kernels[name] = kernel
    together = {}
    for architecture, kernels in found.items():
        of_name = together.setdefault(architecture, {})
        for name, kernel in zip(readable(kernels), kernels.values()):
            of_name[name] = Kernel(*map(max, kernel, of_name.get(name, kernel)))
    return together


def local_memory_of(name):
    return next((size for pattern, size in FRAMES.items() if re.fullmatch(pattern, name)), 0)


def shared_of(architecture):
    number = re.fullmatch(r"sm_(\d+)[af]?", architecture)
    if not number or number.group(1) not in SHARED:
        sys.exit(f"{architecture}: got an architecture without a row of SHARED, expected one of {', '.join(SHARED)}")
    return SHARED[number.group(1)]


def check(kernels, launches, architecture="sm_90a"):
    """What is wrong, as lines; `launches`: {name: (threads, dynamic bytes)}."""
    wrong, most = [], shared_of(architecture)
    for name, kernel in sorted(kernels.items()):
        if name not in launches:
            wrong.append(f"{name}: no launch of it is known, so that its threads and dynamic memory are not")
            continue
        threads, dynamic = launches[name]
        rounded = -(-kernel.registers // UNIT) * UNIT
        if rounded * threads > REGISTERS:
            wrong.append(f"{name}: {kernel.registers} registers of {threads} threads, expected at most {REGISTERS} of a block")
        # Where a block does not fit, its twin is launched; by groups blocks are on 9.0 alone.
        is_launched = architecture.startswith("sm_90") or (HOPPER_ONLY not in name and name not in TWINS)
        if is_launched and kernel.shared + dynamic > most:
            wrong.append(f"{name}: {kernel.shared} static and {dynamic} dynamic bytes of shared memory, expected at most {most}")
        small = TWINS.get(name, name)
        if small not in kernels:
            wrong.append(f"{name}: there is no {small}")
        elif HOPPER_ONLY not in name and (least := kernels[small].shared + launches.get(small, (0, 0))[1]) > ANYWHERE:
            wrong.append(f"{small}: {least} bytes of shared memory, expected at most {ANYWHERE}, which every device has")
        if kernel.shared > WITHOUT_LEAVE:
            wrong.append(f"{name}: {kernel.shared} static bytes of shared memory, expected at most {WITHOUT_LEAVE}")
        if kernel.spilled > SPILLS.get(name, 0):
            wrong.append(f"{name}: {kernel.spilled} bytes of spills, expected at most {SPILLS.get(name, 0)}")
        listed = local_memory_of(name)
        if kernel.frame > listed + kernel.spilled:
            wrong.append(f"{name}: {kernel.frame} bytes of local memory, expected at most {listed} beside {kernel.spilled} bytes of spills")
    return wrong


def unused_rows(kernels):
    """Rows of SPILLS and FRAMES that no kernel of the runtime needs."""
    wrong = [f"SPILLS: {name} spills nothing; remove its row" for name in SPILLS if not getattr(kernels.get(name), "spilled", 0)]
    return wrong + [f"FRAMES: no kernel of {pattern} has local memory; remove the row" for pattern in FRAMES
                    if not any(kernel.frame and re.fullmatch(pattern, name) for name, kernel in kernels.items())]


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
    said = ""
    for architecture in ARCHITECTURES + (FURTHER if training.WHOLE else []):
        done = training.run([*filter(None, [shutil.which("ccache")]), nvcc, "-std=c++17", "-O3", "--fmad=false",
                             "--expt-relaxed-constexpr", "--resource-usage", f"-gencode=arch=compute_{architecture},code=sm_{architecture}", "-I", folder,
                             "-c", folder / "kernels.cu", "-o", folder / "kernels.o"])
        said += done.stdout + done.stderr
    text = (folder / "kernels.cu").read_text()
    launches = {kernel: (int(threads), int(shared)) for kernel, threads, shared in
                re.findall(r"launchKernel\(\s*(\w+),\s*/\*grid=\*/[^/]*/\*block=\*/(\d+),\s*/\*sharedBytes=\*/(\d+)", text)}
    found, known = kernels_in(said), {}
    for kernel in {kernel for kernels in found.values() for kernel in kernels}:
        # Kernels of runtime/kernels/cuda/FusedKernel.h are launched there, with at most 256 threads.
        launch = (256, 0) if kernel.startswith("fsdp::rt::device::") else launches.get(kernel.split("::")[-1])
        if launch:
            known[kernel] = launch
    return found, known


def line_of(name, architecture, kernels, launches):
    most = max(kernels, key=lambda kernel: kernels[kernel].shared + launches.get(kernel, (0, 0))[1])
    spilling, local = ([getattr(kernel, field) for kernel in kernels.values() if getattr(kernel, field)] for field in ("spilled", "frame"))
    return (f"{name}: {architecture}: {len(kernels)} kernels, at most {max(k.registers for k in kernels.values())} registers, "
            f"{len(spilling)} spill {sum(spilling)} bytes, {len(local)} have up to {max(local, default=0)} bytes of local memory, "
            f"{kernels[most].shared} + {launches.get(most, (0, 0))[1]} bytes of shared memory in {most}")


def check_limits():
    """A kernel that exceeds every limit is found; otherwise the other checks prove nothing."""
    large = Kernel(200, WITHOUT_LEAVE + 1, UNIT, 2 * UNIT)
    planted = {
        "every limit": (check({"k": large}, {"k": (512, 200000)}), 6),
        "an unknown launch": (check({"k": Kernel(1, 0, 0, 0)}, {}), 1),
        "a block of 9.0 on 12.0": (check({"k": Kernel(1, 0, 0, 0)}, {"k": (32, ANYWHERE + 1)}, "sm_120"), 2),
        "local memory beside spills": (check({"fsdp::rt::setRate": Kernel(1, 0, 0, 48)}, {"fsdp::rt::setRate": (1, 0)}), 1),
        "rows without a kernel": (unused_rows({}), len(SPILLS) + len(FRAMES)),
    }
    for what, (wrong, expected) in planted.items():
        if len(wrong) != expected:
            sys.exit(f"{what}: got {wrong}, expected {expected} lines")
    two = kernels_in("Compiling entry function 'k' for 'sm_80'\nUsed 8 registers\nCompiling entry function 'k' for 'sm_120'\nUsed 9 registers\n")
    if [(name, kernels["k"].registers) for name, kernels in two.items()] != [("sm_80", 8), ("sm_120", 9)]:
        sys.exit(f"two architectures: got {two}, expected 8 registers on sm_80 and 9 on sm_120")


def main(scratch, nvcc, build):
    scratch, wrong = pathlib.Path(scratch), []
    os.environ.update(CCACHE_BASEDIR=str(training.HERE.parents[1]), CCACHE_NOHASHDIR="1")
    scratch.mkdir(parents=True, exist_ok=True)
    check_limits()
    cases = {"runtime": of_runtime(pathlib.Path(build), scratch)}
    models = training.chosen(MODELS, "llama", "gpt2 wide bf16")
    cases.update({name: of_model(name, options, nvcc, scratch) for name, options in models.items()})
    wrong += not_interpreted(pathlib.Path(build))
    for name, (found, launches) in cases.items():
        if not found:
            sys.exit(f"{name}: no kernels were found")
        for architecture, kernels in sorted(found.items()):
            wrong += [f"{name}: {architecture}: {line}" for line in check(kernels, launches, architecture)]
            print(line_of(name, architecture, kernels, launches))
    for kernels in cases["runtime"][0].values():
        wrong += unused_rows(kernels)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
