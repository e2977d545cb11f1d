#!/usr/bin/env python3
"""check_packaged_sources.py PREFIX [--add-runtime BUILD]: the sources of the runtime in an unpacked package are those of the repository.

--add-runtime: adds the library of BUILD as the runtime of a level of the processor, as scripts/build-package adds those that it compiles.
"""

import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = {".h", ".def", ".cpp", ".cu", ".cmake", ".txt"}
LEVEL = "x86-64-v3"


def check(share):
    for folder in ("base", "tokenizer", "runtime"):
        originals = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.suffix in KINDS}
        copies = {path.relative_to(share) for path in (share / folder).rglob("*") if path.is_file()}
        if originals != copies:
            sys.exit(f"{share}: got {sorted(map(str, copies - originals))} and not {sorted(map(str, originals - copies))}, expected the files of {ROOT}")
        for name in sorted(originals):
            if (share / name).read_bytes() != (ROOT / name).read_bytes():
                sys.exit(f"{share / name} differs from that of {ROOT}")


def add_runtime(prefix, build):
    toolchain = json.loads((build / "runtime/toolchain.json").read_text())
    folder = prefix / "lib/fsdpc" / LEVEL
    folder.mkdir(parents=True)
    for key in ("without_mpi", "libraries"):
        for number, word in enumerate(toolchain.get(key, [])):
            if word.startswith(str(build)):
                shutil.copy(word, folder)
                toolchain[key][number] = f"@/{pathlib.Path(word).name}"
    (folder / "toolchain.json").write_text(json.dumps(toolchain))


def main(prefix, *words):
    prefix = pathlib.Path(prefix)
    check(prefix / "share/fsdpc")
    if words:
        add_runtime(prefix, pathlib.Path(words[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
