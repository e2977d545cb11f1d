#!/usr/bin/env python3
"""check_cuda_threads.py SCRATCH BUILD: the threads of the CUDA runtime over the emulated NCCL, under ThreadSanitizer.

The host's thread, the monitor's, the watchdog's, and those of NCCL: jobs that end well, and jobs in which a rank throws,
leaves, or NCCL reports an error, so that the monitor aborts communicators. g++ compiles what the threads share; kernels
come from the build, as they are: they run on fibers, which ThreadSanitizer does not know.
"""

import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import training

ROOT = training.HERE.parent.parent
SOURCES = [
    *(f"base/{name}.cpp" for name in ("Error", "Failure", "WaitCounter")),
    *(f"runtime/{name}.cpp" for name in (
        "comm/Communicator", "comm/SharedMemoryCommunicator", "comm/SharedSegment", "job/Bootstrap", "job/Job", "job/SharedJob",
        "job/StopSignals", "job/Watchdog", "comm/cuda/DevicePeer", "comm/cuda/Monitor", "comm/cuda/NcclChoices",
        "comm/cuda/HeldReceives", "comm/cuda/NcclCollectives", "comm/cuda/NcclWindows", "comm/cuda/PendingActions",
        "comm/cuda/ShardedCollectives", "execution/cuda/Context",
        "execution/cuda/InputStaging", "execution/cuda/ProfilerRanges", "execution/cuda/SegmentGraphs")),
    *(f"test/emulator/{name}.cpp" for name in ("Failure", "Memory", "Nccl", "NcclComm", "NcclLaunchOrder", "Queue", "Runtime", "Settings",
                                              "Symbols")),
    "test/unit/runtime/comm/cuda/CudaRanksMain.cpp", "test/unit/runtime/comm/Conformance.cpp",
]
PLANTED = ("_Z21ncclCommGetAsyncErrorP8ncclCommP12ncclResult_t",
           "_Z22ncclCommInitRankConfigPP8ncclCommi12ncclUniqueIdiP12ncclConfig_t", "_Z18cublasLtGetVersionv",
           "getenv")
# Mesh, mode, emulator, exit status, message.
JOBS = [
    ("fsdp=2", "steps", "devices=2", 0, "done"),
    ("data=2,fsdp=2", "steps", "devices=4,deferred,seed=1", 0, "done"),
    ("fsdp=3", "throw", "devices=3,deferred,seed=2", 1, "the planted fault"),
    ("fsdp=3", "leave", "devices=3,deadlock=100,deferred,seed=3", 1, "over 'all axes': another rank did not join it"),
    ("fsdp=3", "leave", "devices=3,deadlock=100", 1, "over 'all axes': another rank did not join it"),
    ("fsdp=2", "remote", "devices=2", 1, "NCCL reports '"),
    ("fsdp=3", "even-steps", "devices=3,window=fail:1", 0, "done"),
    ("fsdp=3", "even-throw", "devices=3,deadlock=100,deferred,seed=4", 1, "the planted fault"),
    ("fsdp=2", "join", "devices=2,deadlock=100", 1, "for NCCL to connect all ranks"),
]


def compile_all(scratch):
    # A compiler's cache serves all clones: the folder in which it runs is only in debug information.
    os.environ.update(CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")
    mutant = pathlib.Path(os.environ.get("FSDP_CUDA_MUTANT") or scratch)  # scripts/barrier-mutations: a source in the place of its original
    compiler = [*([shutil.which("ccache")] if shutil.which("ccache") else []), "g++", "-std=c++17", "-O1", "-g1",
                "-fsanitize=thread", "-w", f"-I{ROOT}/test/emulator", f"-I{ROOT}"]

    def one(name, sources):
        file = scratch / (name.replace("/", ".") + ".cpp")
        file.write_text("".join(f'#include "{mutant / source if (mutant / source).exists() else source}"\n' for source in sources))
        training.run([*compiler, "-c", file, "-o", file.with_suffix(".o")])
        return file.with_suffix(".o")

    # Few files, each of which reads its headers once: most of the time is theirs. Failure.cpp of the emulator has the same short names as others.
    groups = {}
    for source in SOURCES:
        alone = source == "test/emulator/Failure.cpp"
        groups.setdefault(source if alone else "/".join(source.split("/")[:2]) if source.startswith("test/") else "runtime", []).append(source)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, groups.keys(), groups.values()))


def link(objects, build, scratch):
    text = (build / "test/emulator/build.txt").read_text()
    words = shlex.split(next(line for line in text.splitlines() if line.startswith("link: ")))[1:]
    program = scratch / "cuda-ranks"
    # Objects of the library that hold several files define what `objects` define too: the first definition is linked.
    training.run(["g++", "-fsanitize=thread", "-Wl,-z,muldefs", *objects, *words, *(f"-Wl,--wrap={name}" for name in PLANTED), "-o", program])
    return program


def main(scratch, build):
    scratch, wrong = pathlib.Path(scratch), []
    scratch.mkdir(parents=True, exist_ok=True)
    program = link(compile_all(scratch), pathlib.Path(build), scratch)
    for mesh, mode, emulator, status, says in JOBS:
        done = subprocess.run(["setarch", "-R", program, mesh, mode, "nccl"], capture_output=True, text=True, timeout=training.HANGS,
                              env={"FSDP_EMULATOR": emulator, "FSDP_TIMEOUT": "10" if mode in ("leave", "join") else "60",
                                   "TSAN_OPTIONS": "report_thread_leaks=0"})  # the watchdog ends processes as they are
        text = done.stdout + done.stderr
        what = f"{mode} over {mesh} with {emulator}"
        if done.returncode != status or says not in text or "ThreadSanitizer" in text or "cuda emulator: ncclComm" in text:
            summary = next((line for line in text.splitlines() if "ThreadSanitizer: " in line), "")
            wrong.append(f"{what}: status {done.returncode}, expected {status} and '{says}'; {summary}")
            print(text[:6000], file=sys.stderr)
            if os.environ.get("FSDP_CUDA_MUTANT"):
                break  # one message is enough
        else:
            print(f"ok {what}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
