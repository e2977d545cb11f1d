"""No op, attribute, type, pass or option without a description; no op without an example.

A pass has at most three options. The command-line options of tools have a description too.
"""

import re

from tablegen import defined_here, records
from tree import COMPILER_ROOMS, ROOMS


def has_example(record, description, ops):
    """Whether there is a block of MLIR, or the block of the op that it says to see has this op."""
    if "```mlir" in description:
        return True
    for name in re.findall(r"[Ss]ee `(?:\w+\.)?(\w+)`", description):
        blocks = re.findall(r"```mlir(.*?)```", ops.get(name) or "", re.S)
        if any(re.search(rf"\b{record['opName']}\b", block) for block in blocks):
            return True
    return False


def check_record(path, line, record, found, ops):
    kinds = set(record["!superclasses"])
    name = record["!name"]
    if "PassBase" in kinds:
        name = record["argument"]
        if not (record["summary"] or "").strip():
            yield path, line, f"pass '{name}' has no summary"
        if not (record["description"] or "").strip():
            yield path, line, f"pass '{name}' has no description"
        options = [found[option["def"]] for option in record["options"]]
        if len(options) > 3:
            yield path, line, f"pass '{name}' has {len(options)} options, expected at most 3"
        for option in options:
            if not (option["description"] or "").strip():
                yield path, line, f"option '{option['argument']}' of pass '{name}' has no description"
    elif "Op" in kinds:
        name = record["opName"]
        description = record["description"] or ""
        if not (record["summary"] or "").strip():
            yield path, line, f"op '{name}' has no summary"
        if not re.sub(r"```.*?```", "", description, flags=re.S).strip():
            yield path, line, f"op '{name}' has no description"
        if not has_example(record, description, ops):
            yield path, line, f"op '{name}' has no example (a ```mlir block)"
    elif "AttrDef" in kinds or "TypeDef" in kinds:
        enum = "EnumAttr" in kinds
        if not enum and not ((record["description"] or "").strip() or (record["summary"] or "").strip()):
            yield path, line, f"'{name}' has no description"


def check(tree):
    files = {path: records(tree, path) for path in tree.paths(".td", under=ROOMS)}
    ops = {
        record["opName"]: record["description"]
        for path, found in files.items()
        for _, record in defined_here(found, path) if "opName" in record
    }
    for path, found in files.items():
        for line, record in defined_here(found, path):
            yield from check_record(path, line, record, found, ops)
    for path in tree.paths(".cpp", ".h", under=COMPILER_ROOMS):
        text = tree.text(path)
        for match in re.finditer(r"\bcl::(?:opt|list|bits)<[^;]*;", text):
            if "cl::desc" not in match.group():
                line = text.count("\n", 0, match.start()) + 1
                yield path, line, "a command-line option without cl::desc"
