#!/usr/bin/env python3
"""check_source.py SCRATCH BUILD: the folder that --emit=source writes builds by itself, with g++ and without LLVM, file by file, and trains.

It has every file of the runtime that a program of the CPU needs, and its CMake files find them. Each check compiles the program and five files of the runtime,
and takes the rest from the library of the build. ./check --all compiles all of them.
"""

import pathlib
import shlex
import subprocess
import sys

import training

ROOT = training.HERE.parents[1]
FOLDERS = ("base", "tokenizer", "runtime")
# What this program computes with, moves and says.
CHOSEN = ("base/Failure.cpp", "runtime/comm/SharedMemoryCommunicator.cpp", "runtime/device/Stream.cpp", "runtime/kernels/Optimizer.cpp",
          "runtime/program/Shard.cpp")


def check_files(source):
    """It has the sources and headers of the repository, those of CUDA apart, and nothing of LLVM."""
    for folder in FOLDERS:
        for original in sorted((ROOT / folder).rglob("*")):
            name = original.relative_to(ROOT)
            if original.suffix in (".cpp", ".h") and "cuda" not in name.parts and original.name != "CudaRuntime.h":
                copy = source / name
                if not copy.exists() or copy.read_bytes() != original.read_bytes():
                    sys.exit(f"{copy}: got {'another text' if copy.exists() else 'no file'}, expected that of {original}")
    for file in source.rglob("*"):
        if file.suffix in (".cpp", ".h") or file.name == "CMakeLists.txt":
            words = [word for word in ("llvm", "mlir", "LLVM", "MLIR") if word in file.read_text()]
            if words:
                sys.exit(f"{file}: got '{words[0]}', expected no dependency on LLVM")


def compile_chosen(build, library):
    """The program of some files that g++ compiled, as the folder's own CMake files say, and of the library."""
    objects = []
    for name in CHOSEN:
        stem = name.removesuffix(".cpp")
        target = stem.removeprefix("runtime/") if stem.startswith("runtime/") else f"__/{stem}"
        training.run(["make", "-C", build / "runtime", f"{target}.o"])
        found = [path for path in (build / "runtime").rglob(f"{pathlib.Path(name).name}.o") if str(path).endswith(f"{target}.cpp.o")]
        if len(found) != 1:
            sys.exit(f"{name}: got the objects {found}, expected one")
        objects += found
    training.run(["make", "-C", build, "train.o", "kernels.o"])
    words = shlex.split((build / "CMakeFiles/train.dir/link.txt").read_text())
    at = words.index("runtime/libfsdp_runtime.a")
    # Objects of the library that hold several files define what `objects` define too: the first definition is linked.
    words[at:at + 1] = ["-Wl,-z,muldefs", *map(str, objects), str(library)]
    done = subprocess.run(words, cwd=build, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(words)}\n{done.stdout}{done.stderr}")


def main(scratch, build):
    scratch = pathlib.Path(scratch).resolve()
    source, own, golden = scratch / "source", scratch / "build", training.GOLDEN / "linear"
    scratch.mkdir(parents=True)
    training.run([training.tool("linear"), "--in=5", "--out=3", "--batch=10", "--optimizer=sgd", "--lr=0.1", "--mesh=fsdp=2", "--emit=source",
                  "-o", source])
    check_files(source)
    settings = ["env", f"CCACHE_BASEDIR={scratch}", "CCACHE_NOHASHDIR=1", "CCACHE_DEPEND=1"]
    training.run(["cmake", "-S", source, "-B", own, "-G", "Unix Makefiles", "-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_CXX_COMPILER_LAUNCHER=" + ";".join([*settings, "ccache"]),
                  "-DCMAKE_UNITY_BUILD=OFF", "-DMLIR_DIR=nowhere"])
    if training.WHOLE:
        training.run(["cmake", "--build", own, "--target", "train", "-j2"])
    else:
        compile_chosen(own, pathlib.Path(build) / "lib/libfsdp_runtime.a")
    weights = scratch / "weights.safetensors"
    training.run([own / "train", "--data", golden / "10-5-3.data.safetensors", "--init", golden / "10-5-3.init.safetensors", "--steps", "1",
                  "--export", weights])
    training.compare_weights(weights, golden / "10-5-3.expected.safetensors", "--absolute=1e-6")


if __name__ == "__main__":
    main(*sys.argv[1:])
