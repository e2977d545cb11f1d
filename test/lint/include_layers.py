"""Dependencies point one way: tools -> {passes, codegen, dsl, interpreter} -> dialect -> MLIR.

Siblings never include one another; runtime includes nothing of ours from above, and only
generated code and tests include it, but for the numbers that the compiler plans with
(runtime/Limits.h, which includes nothing of ours); cli, which reads numbers and options, stands below the command
lines of both and includes nothing of ours; passes/schedule decides on plain data, without IR.
Includes are rooted at the repository.
"""

import posixpath
import re

from tree import ROOMS

ALLOWED = {
    "cli": {"cli"},
    "dialect": {"dialect"},
    "interpreter": {"interpreter", "dialect"},
    "passes": {"passes", "dialect", "cli"},
    "codegen": {"codegen", "dialect"},
    "dsl": {"dsl", "dialect"},
    "runtime": {"runtime", "cli"},
    "tools": {"tools", "passes", "codegen", "dsl", "interpreter", "dialect", "cli"},
    "examples": {"examples", "dsl", "tools"},
}
PLAIN = "passes/schedule/"
# What a header of one folder may be to folders that must not include the others of it.
NUMBERS = "runtime/Limits.h"
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s*(["<])([^">]+)[">]')


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
                yield path, number, f"'{name}': passes/schedule is plain data, without IR"
            elif target in ROOMS and "/" in name:
                if target not in ALLOWED[room]:
                    yield path, number, f"'{name}': {room} must not include {target}"
            elif quote == '"' and (
                name.startswith(".") or tree.exists(posixpath.join(posixpath.dirname(path), name))
            ):
                yield path, number, f"'{name}': includes are rooted at the repository"
