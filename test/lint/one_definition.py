"""One name, one type: no two files define a class of one name in one namespace.

Two such classes are linked into one tool, and the linker keeps one of each of their inline
members, whichever it likes (the one definition rule).
"""

import re

from tree import COMPILER_ROOMS

# The contexts of the CPU and the CUDA runtime: libraries of which a program links one.
ALTERNATIVES = {"fsdp::rt::Context", "fsdp::rt::recording::Context"}

TOKENS = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*)
      |(?P<namespace>\b(?:inline\s+)?namespace\b\s*(?P<path>[\w:]*)\s*\{)
      |(?P<type>\b(?:struct|class|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?(?P<name>\w+)
          (?:\s+final)?\s*(?::(?!:)[^;{}]*)?\{)
      |(?P<open>\{)|(?P<close>\})""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def definitions(text):
    """(line, namespace, name) of every class and enumeration that stands in a namespace."""
    scopes = []  # a namespace's path, or None for any other brace
    for match in TOKENS.finditer(text):
        if match["skip"]:
            continue
        if match["namespace"]:
            scopes.append(match["path"] or "(anonymous)")
            continue
        if match["close"]:
            if scopes:
                scopes.pop()
            continue
        if match["type"] and not {None, "(anonymous)"} & set(scopes):
            line = text.count("\n", 0, match.start("name")) + 1
            yield line, "::".join(scopes), match["name"]
        scopes.append(None)


def check(tree):
    first = {}
    for path in tree.paths(".h", ".cpp", under=COMPILER_ROOMS + ("runtime", "test/emulator")):
        for line, namespace, name in definitions(tree.text(path)):
            other = first.setdefault((namespace, name), (path, line))
            if other[0] != path and f"{namespace}::{name}" not in ALTERNATIVES:
                yield path, line, f"'{namespace}::{name}' is defined in {other[0]} too"
