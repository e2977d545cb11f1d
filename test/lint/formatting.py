"""C++ and CUDA sources are as clang-format 22 writes them."""

import re
import shutil
import subprocess

SUFFIXES = (".cpp", ".h", ".cu", ".cuh", ".inc", ".def")
COMMAND = "clang-format-22"


def check(tree):
    if shutil.which(COMMAND) is None:
        yield ".clang-format", 1, f"got no '{COMMAND}' to check with: install it by scripts/install"
        return
    paths = tree.paths(*SUFFIXES)
    found = subprocess.run(
        [COMMAND, "--dry-run", *paths], cwd=tree.root, capture_output=True, text=True
    )
    for path, line in re.findall(r"^(.+?):(\d+):\d+: warning: ", found.stderr, re.MULTILINE):
        yield path, int(line), f"is not formatted: run {COMMAND} -i {path}"
