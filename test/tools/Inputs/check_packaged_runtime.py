"""check_packaged_runtime.py FOLDER FSDPC MODEL FAKE_CMAKE RUNTIMES_CMAKE: the choice of a runtime library.

FOLDER has lib/ and share/, an installed compiler. Packaged runtimes are planted in lib/fsdpc; a compiler of C++ that prints its command
says which one a program is linked with.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

FOLDER, FSDPC, MODEL, CMAKE = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
PACKAGED = FOLDER / "lib" / "fsdpc"
# What processors show in /proc/cpuinfo that have the instructions of a level.
LEVELS = {"x86-64-v4-bf16": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_bf16"},
          "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
          "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}}


def plant(level, mpi):
    (PACKAGED / level).mkdir(parents=True)
    toolchain = {"compiler": "/no/such/compiler", "launcher": "/no/such/cache", "flags": [f"-march={level}"], "hardening": ["-hardened"],
                 "mpi_libraries": [str(mpi)], "without_mpi": ["@/MpiJob.cpp.o"], "libraries": ["@/libfsdp_runtime.a", "-ldl", str(mpi)]}
    (PACKAGED / level / "toolchain.json").write_text(json.dumps(toolchain))


def link(*options, says=None, **environment):
    """The command that would link a program; with `says` the error must have that text instead."""
    done = subprocess.run([FSDPC, MODEL, *options, "-o", str(FOLDER / "never")], capture_output=True, text=True, check=False, cwd=FOLDER,
                          env={**os.environ, "LD_LIBRARY_PATH": str(FOLDER / "lib"), "PATH": f"{FOLDER}/bin:{os.environ['PATH']}",
                               "XDG_CACHE_HOME": str(FOLDER / "cache"), **environment})
    assert done.returncode == 1, f"{done.returncode}: {done.stderr}"
    if says is not None:
        assert says in done.stderr, f"expected '{says}' in: {done.stderr}"
        return None
    found = re.search(r"^links: (.*)$", done.stderr, re.M)
    assert found, done.stderr
    return found[1].split()


def main():
    # CMake's own names of the levels are those that the compiler knows.
    declared = set(re.findall(r"set\(switches_(\S+) ", pathlib.Path(sys.argv[5]).read_text()))
    assert declared == set(LEVELS), declared
    compiler = FOLDER / "bin" / "clang++-22"
    compiler.write_text('#!/bin/sh\nfor last; do test "$last" = -c && exit 0; done\necho "links: $*"\nexit 3\n')
    compiler.chmod(0o755)
    has = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    fitting = [level for level, needs in LEVELS.items() if needs <= has]
    mpi = FOLDER / "libmpi.so"
    for level in LEVELS:
        plant(level, mpi)
    library = lambda level: f"{PACKAGED}/{level}/libfsdp_runtime.a"
    # The best for this processor, the next best where it is missing.
    for level in fitting:
        words = link()
        assert library(level) in words, f"expected {level}: {words}"
        # Without MPI the part that needs it is replaced.
        assert str(mpi) not in words and f"{PACKAGED}/{level}/MpiJob.cpp.o" in words, words
        shutil.move(PACKAGED / level, FOLDER / level)
    for level in fitting:
        shutil.move(FOLDER / level, PACKAGED / level)
    mpi.write_text("")
    words = link()
    assert str(mpi) in words and f"{PACKAGED}/{fitting[0]}/MpiJob.cpp.o" not in words, words
    assert f"{PACKAGED}/{fitting[0]}/MpiJob.cpp.o" in link("--communicator=shm")
    assert not (FOLDER / "cache").exists(), "something was built"
    # A requested one.
    assert library("x86-64-v3") in link(FSDP_RUNTIME="x86-64-v3")
    link(FSDP_RUNTIME="x86-64-v9", says="FSDP_RUNTIME: got 'x86-64-v9', expected one of 'native', 'x86-64-v4-bf16', 'x86-64-v4', 'x86-64-v3'")
    # One for this processor is built on request, and used from then on.
    shutil.copy(CMAKE, FOLDER / "bin" / "cmake")
    (FOLDER / "bin" / "cmake").chmod(0o755)
    planted = FOLDER / "bin" / "planted"
    planted.write_text('#!/bin/sh\necho "the planted compiler runs"\nexit 3\n')
    planted.chmod(0o755)
    link(FSDP_RUNTIME="native", says="building the runtime library for this processor")
    link(says="the planted compiler runs")
    assert library("x86-64-v3") in link(FSDP_RUNTIME="x86-64-v3")


if __name__ == "__main__":
    main()
