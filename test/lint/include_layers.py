"""Dependencies point one way: tools -> {passes, codegen, dsl, interpreter} -> dialect -> {MLIR, base}; runtime -> base.

Siblings never include one another; runtime includes nothing of ours from above, and only
generated code and tests include it, but for the numbers that the compiler plans with
(runtime/program/Limits.h, which includes nothing of ours);
base, which compiler and runtime share, includes nothing of ours; passes/schedule and passes/reshard decide on plain data, without IR.
Includes are rooted at the repository.
"""

import posixpath
import re

from tree import ROOMS

ALLOWED = {
    "base": {"base"},
    "dialect": {"dialect", "base"},
    "interpreter": {"interpreter", "dialect", "base"},
    "passes": {"passes", "dialect", "base"},
    "codegen": {"codegen", "dialect", "base"},
    "dsl": {"dsl", "dialect", "base"},
    "runtime": {"runtime", "base"},
    "tools": {"tools", "passes", "codegen", "dsl", "interpreter", "dialect", "base"},
    "examples": {"examples", "dsl", "tools"},
}
PLAIN = ("passes/propagation/", "passes/reshard/", "passes/schedule/")
# What each folder of runtime/ includes besides itself and the files at runtime/'s root. Ranks, their communicators and
# their devices know one another; kernels know no rank, and what trains stands above all.
RUNTIME = {
    "numerics": set(),
    "files": {"numerics"},
    "program": {"numerics"},
    "comm": {"program", "device", "job"},
    "job": {"program", "files", "comm", "device"},
    "device": {"files", "program", "comm", "job"},
    "kernels": {"numerics", "program", "device"},
    "data": {"numerics", "files", "program"},
    "train": {"data", "device", "files", "job", "program"},
}
# Sums over ranks and copies of shards are kernels on a device.
OF_DEVICES = {"comm": {"kernels"}, "device": {"kernels"}}
# What a header of one folder may be to folders that must not include the others of it.
NUMBERS = "runtime/program/Limits.h"
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s*(["<])([^">]+)[">]')


def runtime_folder(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "runtime" and len(parts) > 2 else None


def runtime_fault(path, name):
    """What is wrong with an include of runtime/ in runtime/, or None."""
    source, target = runtime_folder(path), runtime_folder(name)
    if source in (None, target) or target is None:
        return None
    allowed = RUNTIME.get(source, set()) | (OF_DEVICES.get(source, set()) if "/cuda/" in path else set())
    return None if target in allowed else f"runtime/{source} must not include runtime/{target}"


def check(tree):
    for path in tree.paths(".h", ".cpp", ".td", ".cu", ".cuh", under=ROOMS):
        room = path.split("/")[0]
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            target = name.split("/")[0]
            if path == NUMBERS and target in ROOMS:
                yield path, number, f"'{name}': {NUMBERS} is included from everywhere, and includes nothing of ours"
            elif name == NUMBERS and target in ROOMS and room in ("dialect", "passes", "codegen"):
                continue
            elif path.startswith(PLAIN) and target in ("mlir", "dialect"):
                folder = "/".join(path.split("/")[:2])
                yield path, number, f"'{name}': {folder} is plain data, without IR"
            elif target in ROOMS and "/" in name:
                if target not in ALLOWED[room]:
                    yield path, number, f"'{name}': {room} must not include {target}"
                elif fault := runtime_fault(path, name):
                    yield path, number, f"'{name}': {fault}"
            elif quote == '"' and (
                name.startswith(".") or tree.exists(posixpath.join(posixpath.dirname(path), name))
            ):
                yield path, number, f"'{name}': includes are rooted at the repository"
