"""C++ and CUDA sources are as clang-format 22 writes them.

What was found to be so is not formatted again: test/formatted in the build folder has a digest of each such file, of its path, of .clang-format and of
the program's version. FSDP_TEST_FRESH and FSDP_TEST_ALL format every file.
"""

import hashlib
import os
import re
import shutil
import subprocess

SUFFIXES = (".cpp", ".h", ".cu", ".cuh", ".inc", ".def")
COMMAND = "clang-format-22"
FRESH = "FSDP_TEST_FRESH" in os.environ or "FSDP_TEST_ALL" in os.environ


def check(tree):
    if shutil.which(COMMAND) is None:
        yield ".clang-format", 1, f"got no '{COMMAND}' to check with: install it by scripts/install"
        return
    kept = tree.bin.parent / "test" / "formatted"
    known = set() if FRESH or not kept.exists() else set(kept.read_text().split())
    style = subprocess.run([COMMAND, "--version"], capture_output=True, check=True).stdout
    if tree.exists(".clang-format"):
        style += (tree.root / ".clang-format").read_bytes()
    digests = {path: hashlib.sha256(style + f"\0{path}\0".encode() + (tree.root / path).read_bytes()).hexdigest()
               for path in tree.paths(*SUFFIXES)}
    paths = [path for path, digest in digests.items() if digest not in known]
    found = subprocess.run([COMMAND, "--dry-run", *paths], cwd=tree.root, capture_output=True, text=True) if paths else None
    wrong = re.findall(r"^(.+?):(\d+):\d+: warning: ", found.stderr, re.MULTILINE) if found else []
    for path, line in wrong:
        yield path, int(line), f"is not formatted: run {COMMAND} -i {path}"
    if kept.parent.is_dir() and (found is None or found.returncode == 0):
        unformatted = {path for path, _ in wrong}
        new = {digest for path, digest in digests.items() if path not in unformatted}
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text("\n".join(sorted(known | new)))
        part.replace(kept)
