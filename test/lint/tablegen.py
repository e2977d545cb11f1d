"""What the .td files declare, as llvm-tblgen's JSON tells it."""

import json
import pathlib
import subprocess

LLVM = pathlib.Path("/usr/lib/llvm-22")


def records(tree, path):
    """All records of one .td file and what it includes, by name; {} if it does not stand alone."""
    command = [str(LLVM / "bin" / "llvm-tblgen"), "--dump-json", "-I", str(tree.root),
               "-I", str(LLVM / "include"), str(tree.root / path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def defined_here(found, path):
    """The records whose `def` stands in the file `path` itself."""
    name = path.rsplit("/", 1)[-1]
    for record in found.values():
        if isinstance(record, dict) and "!locs" in record:
            where = record["!locs"][0].rsplit(":", 1)
            if where[0].rsplit("/", 1)[-1] == name:
                yield int(where[1]), record
