"""Dependencies point one way: tools -> {passes, codegen, interpreter, models -> dsl -> frontend} -> dialect -> {MLIR, base}; runtime -> tokenizer -> base.

Siblings never include one another; runtime includes nothing of ours from above, and only
generated code and tests include it, but for the numbers that the compiler plans with
(Limits.h and GroupLimit.h of runtime/program, and the lists *.def beside it, which include nothing of ours);
base, which compiler and runtime share, includes nothing of ours; passes/cost, passes/schedule and passes/reshard decide on plain data, without IR.
Includes are rooted at the repository.

No cycles: neither between folders, nor between files, where a header and the source of the same name are one. A file that is in
a cycle is compiled, read and changed together with all of the others.
"""

import collections
import posixpath
import re

from tree import ROOMS

ALLOWED = {
    "base": {"base"},
    "tokenizer": {"tokenizer", "base"},
    "dialect": {"dialect", "base"},
    "interpreter": {"interpreter", "dialect", "base"},
    "passes": {"passes", "dialect", "base"},
    "codegen": {"codegen", "dialect", "base"},
    "frontend": {"frontend", "dialect", "base"},
    "dsl": {"dsl", "frontend", "dialect", "base"},
    "models": {"models", "dsl", "base"},
    "runtime": {"runtime", "tokenizer", "base"},
    "tools": {"tools", "tokenizer", "passes", "codegen", "dsl", "frontend", "interpreter", "dialect", "base"},
    "examples": {"examples", "models", "dsl", "tools"},
}
PLAIN = ("passes/cost/", "passes/propagation/", "passes/reshard/", "passes/schedule/")
# What each folder of runtime/ includes besides itself: base <- program <- device <- comm <- job <- execution <- train, with
# numerics, kernels, files, data and launches beside them. The headers at the root are those of generated programs.
RUNTIME = {
    "numerics": set(),
    "files": set(),
    "program": {"numerics"},
    "device": {"numerics", "program"},
    "kernels": {"numerics", "program", "device"},
    "comm": {"numerics", "program", "device", "kernels"},
    "job": {"program", "files", "device", "comm"},
    "execution": {"numerics", "program", "device", "kernels", "comm", "job"},
    "launches": {"program", "device", "kernels", "comm", "execution"},
    "data": {"numerics", "program"},
    "train": {"numerics", "program", "files", "data", "device", "job", "execution"},
}
# Sums over ranks are kernels on a GPU; on the CPU they are part of comm.
KERNELS_OF_COMM = "runtime/comm/cuda/"
# Files of one folder that folders which must not include the others of it may include.
NUMBERS = ("runtime/program/Limits.h",
           "runtime/program/GroupLimit.h",
           *(f"runtime/program/{name}.def" for name in ("Collectives", "CudaArchitectures", "Kernels")))
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s*(["<])([^">]+)[">]')


def runtime_folder(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "runtime" and len(parts) > 2 else None


def runtime_fault(path, name):
    """What is wrong with an include of runtime/ in runtime/, or None."""
    source, target = runtime_folder(path), runtime_folder(name)
    if source in (None, target) or target is None:
        return None
    allowed = RUNTIME.get(source, set())
    if source == "comm" and not path.startswith(KERNELS_OF_COMM):
        allowed = allowed - {"kernels"}
    return None if target in allowed else f"runtime/{source} must not include runtime/{target}"


def component(path):
    """A header and the source of the same name are one."""
    return posixpath.splitext(path)[0]


def shortest_cycle(graph, start):
    """The nodes of a shortest cycle through `start`, which comes first and last; None where there is none."""
    before = {}
    queue = collections.deque([start])
    while queue:
        node = queue.popleft()
        for target in sorted(graph[node]):
            if target == start:
                cycle = [start]
                while node != start:
                    cycle.append(node)
                    node = before[node]
                return [start, *reversed(cycle)]
            if target not in before:
                before[target] = node
                queue.append(target)
    return None


def cycles(includes, what):
    """A finding for each cycle of `includes`, (source, target) -> (path, line, name), that no other one has shown."""
    graph = collections.defaultdict(set)
    for source, target in includes:
        graph[source].add(target)
    shown = set()
    for start in sorted(graph):
        cycle = None if start in shown else shortest_cycle(graph, start)
        if cycle:
            shown.update(cycle)
            path, number, name = includes[cycle[0], cycle[1]]
            yield path, number, f"'{name}': {what} include one another: {' -> '.join(cycle)}"


def check_cycles(tree, paths):
    files, folders = {}, {}
    known = set(paths)
    for path in paths:
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match or match.group(2) not in known:
                continue
            name = match.group(2)
            place = (path, number, name)
            if component(path) != component(name):
                files.setdefault((component(path), component(name)), place)
            if posixpath.dirname(path) != posixpath.dirname(name):
                folders.setdefault((posixpath.dirname(path), posixpath.dirname(name)), place)
    yield from cycles(files, "files")
    yield from cycles(folders, "folders")


def check(tree):
    yield from check_cycles(tree, tree.paths(".h", ".def", ".cpp", ".td", ".cu", ".cuh", under=ROOMS))
    for path in tree.paths(".h", ".def", ".cpp", ".td", ".cu", ".cuh", under=ROOMS):
        room = path.split("/")[0]
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, name = match.groups()
            target = name.split("/")[0]
            if path in NUMBERS and target in ROOMS:
                yield path, number, f"'{name}': {path} is included from everywhere, and includes nothing of ours"
            elif name in NUMBERS and target in ROOMS and room in ("dialect", "passes", "codegen", "tools"):
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
