#!/usr/bin/env python3
"""check_binaries.py READELF [--hardened] [--fortified] PATH...: what programs and libraries may load, and how they are protected.

PATH is a file or a folder that is searched for programs and shared libraries. No RPATH and no RUNPATH has an empty or a relative
element: the loader takes those for the current folder, and runs code of whoever wrote there. $ORIGIN is allowed.
--hardened: each is position independent, its relocations are read-only and resolved at start (RELRO, BIND_NOW), and functions
with arrays check their frames. --fortified: calls with buffers of known sizes are checked, too.
--planted FOLDER: links programs with each fault into FOLDER and expects that they are found.
"""

import argparse
import pathlib
import re
import subprocess
import sys


def programs_of(paths):
    """The dynamically linked programs and shared libraries among `paths` and below, each once."""
    found = {}
    for path in paths:
        files = [path] if not path.is_dir() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            with open(file, "rb") as opened:
                begin = opened.read(18)
            if begin[:4] == b"\x7fELF" and begin[16] in (2, 3):  # ET_EXEC, ET_DYN
                found.setdefault(file.resolve(), file)
    return list(found.values())


def faults_of(readelf, file, hardened, fortified):
    """What is wrong with one program, in words."""

    def read(*options):
        return subprocess.run([readelf, "-W", *options, str(file)], capture_output=True, text=True, check=True).stdout

    dynamic = read("-d")
    faults = []
    for kind, text in re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        for element in sorted(set(text.split(":"))):
            if not re.match(r"/|\$ORIGIN(/|$)|\$\{ORIGIN\}(/|$)", element):
                faults.append(f"{kind} '{text}' has the element '{element}', expected an absolute path or $ORIGIN")
    if not hardened and not fortified:
        return faults
    symbols = read("--dyn-syms")
    wanted = {
        "is not position independent": re.search(r"Type:\s+DYN", read("-h")),
        "has no read-only relocations (RELRO)": "GNU_RELRO" in read("-l"),
        "binds symbols late (no BIND_NOW)": re.search(r"BIND_NOW|Flags:.*\bNOW\b", dynamic),
        "has no stack protector": "__stack_chk_fail" in symbols,
        "has no checked calls (_FORTIFY_SOURCE)": not fortified or re.search(r"__\w+_chk\b", symbols),
    }
    return faults + [fault for fault, holds in wanted.items() if not holds]


SOURCE = """#include <cstdio>
#include <cstring>
#include <cstdlib>
int main(int argc, char **argv) {
  char text[64];
  std::strcpy(text, argv[0] + (argc > 5));
  std::printf("%s", text);
}
"""


def plant(readelf, folder):
    """Each fault is found, and a program without one passes."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "planted.cpp"
    source.write_text(SOURCE)
    good = "-O2 -fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now".split()
    cases = {
        "none": ([], []),
        "origin": (["-Wl,-rpath,$ORIGIN/../lib:/usr/lib"], []),
        "empty": (["-Wl,-rpath,/usr/lib::"], ["element ''"]),
        "relative": (["-Wl,-rpath,lib"], ["element 'lib'"]),
        "origins": (["-Wl,-rpath,$ORIGINAL"], ["element '$ORIGINAL'"]),
        "rpath": (["-Wl,--disable-new-dtags,-rpath,:/usr/lib"], ["RPATH ':/usr/lib' has the element ''"]),
        "no-pie": (["-fno-PIE", "-no-pie"], ["is not position independent"]),
        "no-relro": (["-Wl,-z,norelro"], ["has no read-only relocations"]),
        "lazy": (["-Wl,-z,lazy"], ["binds symbols late"]),
        "no-protector": (["-fno-stack-protector"], ["has no stack protector"]),
        "no-fortify": (["-U_FORTIFY_SOURCE"], ["has no checked calls"]),
    }
    for name, (options, expected) in cases.items():
        subprocess.run(["g++", *good, *options, str(source), "-o", str(folder / name)], check=True)
        found = faults_of(readelf, folder / name, True, True)
        assert len(found) == len(expected) and all(e in f for e, f in zip(expected, found)), (name, expected, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readelf")
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--hardened", action="store_true")
    parser.add_argument("--fortified", action="store_true")
    parser.add_argument("--planted", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    if options.planted:
        plant(options.readelf, options.planted)
    programs = programs_of(options.paths)
    faults = [f"{file}: {fault}" for file in programs for fault in faults_of(options.readelf, file, options.hardened, options.fortified)]
    print("\n".join(faults + [f"{len(programs)} programs and libraries, {len(faults)} faults"]))
    return 1 if faults or (options.paths and not programs) else 0


if __name__ == "__main__":
    sys.exit(main())
