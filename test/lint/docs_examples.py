"""Every ```mlir block of the documents and of .td descriptions parses, and verifies.

A block may be a fragment: values that it uses and does not define are declared for it, a
module without a mesh is given one, and ops that only stand in a step or a segment are put
into one. A block with `// RUN:` lines is also run, like a lit test (%s is the block).
"""

import concurrent.futures
import os
import re
import subprocess
import tempfile

from tablegen import LLVM
from tree import ROOMS

BLOCK = re.compile(r"^([ \t]*)```mlir[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.M | re.S)
MESH = 'fsdp.mesh @mesh <["data"=2, "fsdp"=4]>\n'
FRAMES = (
    ("", ""),
    (MESH, ""),
    (MESH + "fsdp.step @example evaluate {\n", "\n}\n"),
    (MESH + "fsdp.program @example role {} {\nfsdp.segment @example train next [@example] {\n",
     "\n}\n}\n"),
)
UNDECLARED = re.compile(r"^<stdin>:(\d+):(\d+): error: use of undeclared SSA value name")
OTHER_TYPE = re.compile(r"use of value '(%[\w$.#-]+)' expects different type than prior uses: '(.*)' vs '")


def run_opt(tree, text):
    """The first error of parsing and verifying `text`, or None."""
    done = subprocess.run(
        [str(tree.bin / "fsdp-opt"), "--allow-unregistered-dialect", "-"],
        input=text, capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        return None
    return next((l for l in done.stderr.splitlines() if "error:" in l), f"exit status {done.returncode}")


def parse(tree, block):
    """None if the block parses in one of the frames, else the error of the first frame."""
    errors = []
    for before, after in FRAMES:
        if "fsdp.mesh" in block:
            before = before.replace(MESH, "")
        types = {}
        while True:
            given = "".join(f'{v} = "example.value"() : () -> {t}\n' for v, t in types.items())
            text = before + given + block + after
            error = run_opt(tree, text)
            if error is None:
                return None
            if match := UNDECLARED.search(error):
                line = text.splitlines()[int(match.group(1)) - 1]
                name = re.match(r"%[\w$.-]+", line[int(match.group(2)) - 1:])
                if name and name.group() not in types:
                    types[name.group()] = "none"
                    continue
            elif match := OTHER_TYPE.search(error):
                if types.get(match.group(1)) == "none":
                    types[match.group(1)] = match.group(2)
                    continue
            break
        errors.append(re.sub(r"^.*?error: ", "", error).strip())
    return errors[0]


def run_block(tree, block):
    """None if the block's RUN lines succeed, else what they said."""
    commands = re.findall(r"//\s*RUN:\s*(.*)", block)
    if not commands:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "example.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(block)
        script = "set -eo pipefail\n" + "\n".join(commands).replace("%s", path).replace("%t", path + ".t")
        paths = os.pathsep.join([str(tree.bin), str(LLVM / "bin"), os.environ.get("PATH", "")])
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "PATH": paths})
        if done.returncode == 0:
            return None
        said = (done.stderr or done.stdout).strip().splitlines()
        return "its RUN lines fail: " + (said[0].replace(folder + "/", "") if said else "no output")


def check_block(tree, path, line, block):
    error = parse(tree, block) if "RUN:" not in block else run_block(tree, block)
    return [(path, line, error)] if error else []


def check(tree):
    blocks = []
    documents = [p for p in tree.paths(".md") if not p.startswith(("docs/reference/", "test/"))]
    for path in documents + tree.paths(".td", under=ROOMS):
        text = tree.text(path)
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            blocks.append((path, line, match.group(2)))
    if blocks and not (tree.bin / "fsdp-opt").exists():
        yield "tools", 1, "fsdp-opt is not built: the examples cannot be parsed"
        return
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda block: check_block(tree, *block), blocks):
            yield from found
