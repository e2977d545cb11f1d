"""check_closed_reader.py ROOT: every script in Python whose output nobody reads ends with status 141, and prints nothing else."""

import os
import pathlib
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
# gpu_check writes its report to files, and is to measure to the end.
OTHERS = {"gpu_check"}


def ended(path, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-S", "-B", path, *words], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    return done.returncode, done.stderr


count = 0
for path in sorted([*(root / "scripts").iterdir(), *(root / "bench").iterdir()]):
    if not path.is_file() or path.suffix or path.name in OTHERS or "python" not in path.open(errors="replace").readline():
        continue
    got = ended(path, ["--help"])
    assert got == (141, ""), f"{path}: got {got}, expected status 141 and no message"
    count += 1
print(f"{count} scripts")
