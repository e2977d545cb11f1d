"""Every diagnostic has a test: a distinctive part of its text stands in some test.

A diagnostic is what the code gives to emitError, emitOpError, emitWarning, an `Error` that it
throws, createStringError, and the like. Its text is cut at what is inserted (stream operators,
%s, {0}); a test must have one of the pieces, or four words of it in a row.
"""

import re

from tree import ROOMS

CALLS = re.compile(
    r"\b(?:emitError|emitOpError|emitWarning|emitRemark|emitOptionalError|createStringError|"
    r"fail|refuse|report\w*Error|WithColor::error|throw (?:\w+::)*\w*Error|Error)\s*[({]")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
INSERTED = re.compile(r"%[-+0-9.]*(?:l|ll|z)?[sdufgxcp]|\{\d*[^}]*\}|\\n|\\.")


def statement(text, start):
    """The text from `start` to the `;` that ends its statement (strings skipped)."""
    depth, i = 0, start
    while i < len(text):
        c = text[i]
        if c == '"':
            i = STRING.match(text, i).end() if STRING.match(text, i) else i + 1
            continue
        if c in "({[":
            depth += 1
        elif c in ")}]":
            depth -= 1
            if depth < 0:
                break
        elif c == ";" and depth <= 0:
            break
        i += 1
    return text[start:i]


def joined(text):
    """Adjacent C++ string literals made one, so that a message is found over line ends."""
    return re.sub(r'"\s*\n?\s*"', "", text)


def plain(text):
    return re.sub(r"\s+", " ", text)


def pieces(call):
    """The literal parts of a message that are long enough to be distinctive, longest first."""
    parts = []
    for literal in STRING.findall(joined(call)):
        parts += [plain(part).strip(" '\",:;()[]") for part in INSERTED.split(literal)]
    parts = sorted({p for p in parts if re.search(r"[A-Za-z]{2}", p)}, key=len, reverse=True)
    return [p for p in parts if len(p) >= 12] or parts[:1]


def distinctive(piece):
    """The parts of a piece that a test may look for: it whole, or four words in a row."""
    words = piece.split(" ")
    return [piece] + [" ".join(words[i:i + 4]) for i in range(len(words) - 3)]


def check(tree):
    tests = []
    for path in tree.paths(".mlir", ".test", ".cpp", ".py", ".h", under=("test",)):
        if not path.startswith("test/lint/"):
            text = tree.text(path)
            tests.append(plain(joined(text)))
    tested = "\n".join(tests)
    for path in tree.paths(".cpp", ".h", under=ROOMS):
        text = tree.text(path)
        for match in CALLS.finditer(text):
            line_start = text.rfind("\n", 0, match.start()) + 1
            before = text[line_start:match.start()]
            if "//" in before or before.lstrip().startswith(("*", "#")):
                continue
            call = statement(text, match.start())
            found = pieces(call)
            if found and not any(part in tested for piece in found for part in distinctive(piece)):
                line = text.count("\n", 0, match.start()) + 1
                yield path, line, f"no test has the diagnostic '{found[0]}'"
