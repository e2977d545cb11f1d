"""The compiler and the runtime know no model: a new one needs no change in them."""

import re

ROOMS = ("dialect", "passes", "codegen", "runtime", "interpreter")
MODEL = re.compile(r"(?<![A-Za-z])(mlp|gpt-?2|llama\d*|linear)(?![A-Za-z])", re.IGNORECASE)
# `linear` is a word of mathematics, and the name of a learning-rate schedule.
SCHEDULE = re.compile(r"schedule|cosine|warm-?up|decay", re.IGNORECASE)
MATHEMATICS = re.compile(
    r"\b(?:non|bi|multi|piecewise)[- ]?linear|linear (?:in|time|algebra|combination|index|map|order|scan|search|"
    r"position|offset|address|function|expression|interpolation)\b|\b(?:is|are|be) linear\b",
    re.IGNORECASE)


def check(tree):
    for path in tree.paths(".cpp", ".h", ".td", ".cu", ".cuh", ".inc", ".txt", under=ROOMS):
        lines = tree.lines(path)
        for number, line in lines:
            for match in MODEL.finditer(line):
                if match.group(1).lower() == "linear":
                    near = "\n".join(text for _, text in lines[max(0, number - 6):number + 5])
                    if SCHEDULE.search(near) or MATHEMATICS.search(line):
                        continue
                yield path, number, f"'{match.group(1)}' names a model"
