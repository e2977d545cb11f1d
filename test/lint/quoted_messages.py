"""The messages that docs/troubleshooting.md quotes are those that the sources have.

A message is the code in the first column of a table whose head is `message`; `…` stands for what varies. Each piece between must be in
the literals of one source file, in this order.
"""

import re

from diagnostics_tested import joined
from tree import ROOMS

PAGE = "docs/troubleshooting.md"
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def quoted(text):
    """(line, message) of every row."""
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("| message |"):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and (match := re.match(r"\| `([^`]+)` \|", line)):
            yield number, match[1].replace("\\|", "|")


def literals(text):
    """The literals of a file one after another; what is inserted into them is a mark."""
    found = "\n".join(literal.replace('\\"', '"') for literal in LITERAL.findall(joined(text)))
    return re.sub(r"%[-+0-9.]*(?:l|ll|z)?[sdufg]|\{\d+\}", "\0", found)


def has(text, pieces):
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def check(tree):
    if not tree.exists(PAGE):
        return
    sources = [literals(tree.text(path)) for path in tree.paths(".cpp", ".h", under=ROOMS)]
    for line, message in quoted(tree.text(PAGE)):
        pieces = [piece.strip(" ") for piece in message.split("…")]
        pieces = [piece for piece in pieces if re.search(r"[A-Za-z]", piece)]
        if not pieces or not any(has(source, pieces) for source in sources):
            yield PAGE, line, f"no source has the message '{message}'"
