"""Checks that cannot fail: a directive without its colon is a comment and passes.

Refused in lit tests:
 - a comment that starts with a directive word but is none (`// CHECK foo`, `// RUN foo`);
 - a directive of a prefix that no FileCheck in the file reads;
 - a FileCheck prefix without a single directive;
 - expected diagnostics that nothing verifies, or that have no {{pattern}};
 - a test without RUN, or without anything that can fail it.
"""

import re

LIT_WORDS = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "DEFINE", "REDEFINE", "END"}
PROSE_WORDS = {"NOTE", "TODO"}
SUFFIXES = r"(?:-(?:NEXT|SAME|NOT|DAG|LABEL|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?"
COMMENT = re.compile(r"^\s*(?://+|#+|;+)\s*([A-Z][A-Z0-9_]*)([-A-Z0-9_{}]*)(.?)")
# Commands that make a test fail, besides FileCheck and verified diagnostics.
COMPARISONS = re.compile(r"\b(?:diff|cmp|grep)\b|\bcompare[_-]\w+|\bcheck[_-]\w+")


def used_prefixes(commands):
    """The prefixes that FileCheck reads in the joined RUN lines."""
    prefixes = set()
    for part in re.split(r"FileCheck", commands)[1:]:
        call = re.split(r"[|;&]", part)[0]
        named = re.findall(r"--?check-prefix(?:es)?[= ]\s*([\w,-]+)", call)
        prefixes.update(p for names in named for p in names.split(","))
        if not named:
            prefixes.add("CHECK")
    return prefixes


def check_file(path, lines):
    commands = " ".join(
        m.group(1) for _, line in lines if (m := re.search(r"(?://|#|;)\s*RUN:(.*)", line))
    )
    if not commands:
        yield path, 1, "no RUN line: lit cannot run this test"
        return
    prefixes = used_prefixes(commands)
    alive = set()
    for number, line in lines:
        match = COMMENT.match(line)
        if not match:
            continue
        word, rest, after = match.groups()
        whole = word + rest
        if word in LIT_WORDS and not rest:
            if after != ":" and word == "RUN":
                yield path, number, f"'{word}' without a colon is a comment"
            continue
        prefix = next(
            (p for p in sorted(prefixes | {"CHECK"}, key=len, reverse=True)
             if whole == p or whole.startswith((p + "-", p + "{"))), None)
        if prefix is None:
            if after == ":" and len(word) > 2 and whole not in PROSE_WORDS:
                yield path, number, f"'{whole}:' is no prefix that a FileCheck in this file reads"
        elif not re.fullmatch(SUFFIXES, whole[len(prefix):]):
            if after == ":":
                yield path, number, f"'{whole}:' is no directive of FileCheck"
        elif after != ":":
            yield path, number, f"'{whole}' without a colon is a comment"
        elif prefix not in prefixes:
            yield path, number, f"'{whole}:' is no prefix that a FileCheck in this file reads"
        else:
            alive.add(prefix)
    for prefix in sorted(prefixes - alive):
        if "implicit-check-not" not in commands and not re.search(r"FileCheck\s+(?!%s)\S*%", commands):
            yield path, 1, f"FileCheck reads prefix '{prefix}', which has no directive"

    verified = re.search(r"--?verify-diagnostics", commands)
    expected = 0
    for number, line in lines:
        if match := re.search(r"//\s*expected-(?:error|warning|note|remark)(\S*)(.*)", line):
            expected += 1
            if not verified:
                yield path, number, "an expected diagnostic, but no RUN line has -verify-diagnostics"
            elif "{{" not in match.group(1) + match.group(2):
                yield path, number, "an expected diagnostic without a {{pattern}}"
    if not alive and not (verified and expected) and not COMPARISONS.search(commands):
        yield path, 1, "nothing here can fail but the tool itself: add a CHECK line or a comparison"


def check(tree):
    for path in tree.paths(".mlir", ".test", under=("test",)):
        if "/Inputs/" in path or "/inputs/" in path:
            continue
        yield from check_file(path, tree.lines(path))
